// Convolutions of 3x3 with stride 1 and padding 1 by Winograd's F(4x4, 3x3): a quarter of the
// products of a direct one, for transforms before and after. Errors (norm of the difference over
// the norm) were 5e-7 to 1.1e-6 where measured, direct sums' 1.3e-7 to 7.2e-7.
#pragma once

#include "kernels/base/buffer.h"
#include "kernels/base/shape.h"
#include "kernels/base/stream.h"
#include "kernels/cpu/isa.h"
#include "kernels/shapes.h"

namespace convoy::cpu {

/// What a convolution computes.
enum class ConvPass { forward, input_gradient, weight_gradient };

/// Whether Winograd's way is the faster one. It depends on nothing but its arguments, so that runs
/// and splits with the same shapes have the same bits.
bool winograd_pays(const Conv2dShape& shape, ConvPass pass, const Isa& isa);

/// Queues a pass for which winograd_pays(). The output is y, dx or dw; `weights` are the strides of
/// w or dw, whose blocks are isa().block wide; activations may be in any layout.
void submit_winograd(Stream& stream, const Conv2dShape& shape, ConvPass pass, ConstBuffer x,
                     const WinogradWeights& weights, ConstBuffer y);

}  // namespace convoy::cpu
