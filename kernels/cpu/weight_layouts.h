// Layouts of weights, numbered from 16 up as they are first met. Only the convolution library knows
// what they mean.
#pragma once

#include <cstddef>

#include "kernels/base/buffer.h"
#include "kernels/base/shape.h"
#include "kernels/base/stream.h"

namespace convoy::cpu {

/// Memory of weights of `shape` in `layout` >= 16.
std::size_t weight_bytes(LayoutId layout, const Shape& shape);

/// Queues a copy of weights where at least one of both layouts is >= 16.
void submit_weight_reorder(Stream& stream, const Shape& shape, ConstBuffer x, Buffer y);

}  // namespace convoy::cpu
