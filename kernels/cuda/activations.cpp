#include "kernels/cuda/activations.h"

#include "kernels/base/error.h"
#include "kernels/cuda/operands.h"

namespace convoy::CONVOY_GPU {

ActivationStrides strides_of(const char* kernel, ConstBuffer buffer, std::int64_t channels,
                             std::int64_t spatial) {
  if (buffer.layout == kPlain) return {channels * spatial, spatial, 1};
  CONVOY_DCHECK(buffer.layout == kChannelsLast,
                "{}: an activation is in layout {}, expected plain or channels last", kernel,
                buffer.layout);
  return {channels * spatial, 1, channels};
}

ActivationIn activation(const char* kernel, ConstBuffer buffer, std::int64_t channels,
                        std::int64_t spatial) {
  if (!buffer) return {};
  return {buffer.data, strides_of(kernel, buffer, channels, spatial)};
}

ActivationOut activation_out(const char* kernel, Buffer buffer, std::int64_t channels,
                             std::int64_t spatial) {
  if (!buffer) return {};
  return {buffer.data, strides_of(kernel, buffer, channels, spatial)};
}

int channel_vector(DType dtype, std::int64_t channels,
                   std::initializer_list<ConstBuffer> operands) {
  const int width = dtype == DType::bf16 ? 8 : dtype == DType::f32 ? 4 : 1;
  if (channels % width != 0) return 1;
  for (const ConstBuffer& operand : operands) {
    if (!operand) continue;
    const bool aligned = reinterpret_cast<std::uintptr_t>(operand.data) % 16 == 0;
    if (operand.layout != kChannelsLast || !aligned) return 1;
  }
  return width;
}

DType activation_dtype(const char* kernel, std::initializer_list<ConstBuffer> operands) {
  const ConstBuffer* first = nullptr;
  for (const ConstBuffer& operand : operands) {
    if (!operand) continue;
    if (!first) first = &operand;
    CONVOY_CHECK(operand.dtype == first->dtype, "{}: operands are {} and {}, expected one dtype",
                 kernel, name(first->dtype), name(operand.dtype));
  }
  CONVOY_DCHECK(first, "{}: no operand is given", kernel);
  if (!is_floating(first->dtype)) fail_dtype(kernel, first->dtype, "f32, f64 or bf16");
  return first->dtype;
}

DType parameter_dtype(DType dtype) {
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

FloatOrDouble float_or_double(const char* kernel, const char* operand, ConstBuffer buffer) {
  CONVOY_DCHECK(buffer && buffer.layout == kPlain &&
                    (buffer.dtype == DType::f32 || buffer.dtype == DType::f64),
                "{}: {} has dtype {} and layout {}, expected f32 or f64 and plain", kernel, operand,
                name(buffer.dtype), buffer.layout);
  return {buffer.data, buffer.dtype == DType::f64};
}

}  // namespace convoy::CONVOY_GPU
