#include "kernels/cuda/precision.h"

#include "kernels/base/error.h"
#include "kernels/cuda/operands.h"

namespace convoy::CONVOY_GPU {

DType dtype_of_all(const char* kernel, std::initializer_list<ConstBuffer> tensors) {
  const DType dtype = tensors.begin()->dtype;
  for (const ConstBuffer& tensor : tensors) {
    CONVOY_CHECK(!tensor || tensor.dtype == dtype, "{}: operands are {} and {}, expected one dtype",
                 kernel, name(dtype), name(tensor.dtype));
  }
  if (!is_floating(dtype)) fail_dtype(kernel, dtype, "f32, f64 or bf16");
  return dtype;
}

void require_parameter(const char* kernel, DType dtype, ConstBuffer parameter) {
  const DType expected = dtype == DType::f64 ? DType::f64 : DType::f32;
  CONVOY_DCHECK(!parameter || parameter.dtype == expected, "{}: {} beside {} tensors, expected {}",
                kernel, name(parameter.dtype), name(dtype), name(expected));
}

}  // namespace convoy::CONVOY_GPU
