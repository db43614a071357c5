// Twins of the fast kernels, one output per thread: any floating dtype, layout, group and dilation.
// What they compute is plain to see, so that they are the oracle on a device; and they are what
// runs where no fast kernel applies. Operands as those of the kernels of the seam.
#pragma once

#include "kernels/base/stream.h"
#include "kernels/cuda/platform.h"
#include "kernels/shapes.h"

namespace convoy::CONVOY_GPU {

void naive_conv2d_forward(Stream& stream, const Conv2dShape& shape, ConstBuffer x, ConstBuffer w,
                          ConstBuffer b, Buffer y);
void naive_conv2d_input_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer dy,
                                 ConstBuffer w, Buffer dx);
/// Without db: bias_gradient() has no twin.
void naive_conv2d_weight_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer x,
                                  ConstBuffer dy, Buffer dw);

void naive_linear_forward(Stream& stream, const LinearShape& shape, ConstBuffer x, ConstBuffer w,
                          ConstBuffer b, Buffer y);
void naive_linear_input_gradient(Stream& stream, const LinearShape& shape, ConstBuffer dy,
                                 ConstBuffer w, Buffer dx);
void naive_linear_weight_gradient(Stream& stream, const LinearShape& shape, ConstBuffer x,
                                  ConstBuffer dy, Buffer dw);

}  // namespace convoy::CONVOY_GPU
