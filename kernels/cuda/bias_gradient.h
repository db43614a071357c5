// Gradient of a bias: the sum of dy over all but channels.
#pragma once

#include "kernels/base/buffer.h"
#include "kernels/base/shape.h"
#include "kernels/base/stream.h"
#include "kernels/cuda/platform.h"

namespace convoy::CONVOY_GPU {

/// db (b) = sum of dy (a, b, h, w), any layout and floating dtype, over a, h and w, taken in double
/// and in an order of the shape's own. Without elements the sum is zero.
void bias_gradient(Stream& stream, const Shape& shape, ConstBuffer dy, Buffer db);

}  // namespace convoy::CONVOY_GPU
