// Layouts that convolution likes best.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/layout.h"

namespace convoy::CONVOY_GPU {

// Rows of channels in whole 16-byte words; images of three channels get a fourth. What has neither
// is work of the naive kernels, which are as good at plain tensors.
Conv2dLayouts conv2d_layouts(const Conv2dShape& shape, DType dtype) {
  const std::int64_t word = dtype == DType::bf16 ? 8 : 4;
  const bool ordinary = shape.groups == 1 && shape.dilation_h == 1 && shape.dilation_w == 1;
  if (dtype == DType::f64 || !ordinary || shape.k % word != 0) return {};
  if (shape.c % word == 0) return {kChannelsLast, kChannelsLast, kChannelsLast};
  if (shape.c <= 4) return {kChannelsLast4, kChannelsLast4, kChannelsLast};
  return {};
}

}  // namespace convoy::CONVOY_GPU
