// Which calls go to tensor cores, by the plan and by where the operands lie.
#include <algorithm>

#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/mma.h"

namespace convoy::CONVOY_GPU {
namespace {

bool has_tensor_cores_for(const Stream& stream, DType dtype) {
  return dtype == DType::bf16 || (dtype == DType::f32 && allows_tf32(stream));
}

// Kernels move 16 bytes at a time. Operands left out are aligned.
bool are_aligned(std::initializer_list<ConstBuffer> operands) {
  return std::all_of(operands.begin(), operands.end(), [](const ConstBuffer& operand) {
    return reinterpret_cast<std::uintptr_t>(operand.data) % 16 == 0;
  });
}

Conv2dShape as_convolution(const LinearShape& shape) {
  return {.n = shape.rows, .c = shape.in, .h = 1, .w = 1, .k = shape.out, .r = 1, .s = 1};
}

}  // namespace

bool mma_conv2d_forward(Stream& stream, const Conv2dShape& shape, ConstBuffer x, ConstBuffer w,
                        ConstBuffer b, Buffer y, std::optional<MmaTiles> tiles) {
  if (!has_tensor_cores_for(stream, x.dtype) || !are_aligned({x, w, y})) return false;
  const auto plan =
      mma_plan(ConvPass::forward, shape, {x.layout, w.layout, y.layout}, x.dtype, tiles);
  if (plan) mma_forward(stream, *plan, x, w, b, y);
  return plan.has_value();
}

bool mma_conv2d_input_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer dy,
                               ConstBuffer w, Buffer dx, std::optional<MmaTiles> tiles) {
  if (!has_tensor_cores_for(stream, dy.dtype) || !are_aligned({dy, w, dx})) return false;
  const auto plan =
      mma_plan(ConvPass::input_gradient, shape, {dx.layout, w.layout, dy.layout}, dy.dtype, tiles);
  if (plan) mma_input_gradient(stream, *plan, dy, w, dx);
  return plan.has_value();
}

bool mma_conv2d_weight_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer x,
                                ConstBuffer dy, Buffer dw, std::optional<MmaTiles> tiles) {
  if (!has_tensor_cores_for(stream, x.dtype) || !are_aligned({x, dy, dw})) return false;
  const auto plan =
      mma_plan(ConvPass::weight_gradient, shape, {x.layout, dw.layout, dy.layout}, x.dtype, tiles);
  if (plan) mma_weight_gradient(stream, *plan, x, dy, dw);
  return plan.has_value();
}

bool mma_linear_forward(Stream& stream, const LinearShape& shape, ConstBuffer x, ConstBuffer w,
                        ConstBuffer b, Buffer y) {
  return mma_conv2d_forward(stream, as_convolution(shape), x, w, b, y);
}

bool mma_linear_input_gradient(Stream& stream, const LinearShape& shape, ConstBuffer dy,
                               ConstBuffer w, Buffer dx) {
  return mma_conv2d_input_gradient(stream, as_convolution(shape), dy, w, dx);
}

bool mma_linear_weight_gradient(Stream& stream, const LinearShape& shape, ConstBuffer x,
                                ConstBuffer dy, Buffer dw) {
  return mma_conv2d_weight_gradient(stream, as_convolution(shape), x, dy, dw);
}

}  // namespace convoy::CONVOY_GPU
