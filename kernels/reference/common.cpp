#include "kernels/reference/common.h"

namespace convoy::reference {

DType common_dtype(const char* kernel, std::initializer_list<ConstBuffer> operands) {
  const ConstBuffer* first = nullptr;
  for (const ConstBuffer& operand : operands) {
    if (!operand) continue;
    CONVOY_DCHECK(operand.layout == kPlain, "{}: layout {} is none of ref, expected plain", kernel,
                  operand.layout);
    if (!first) first = &operand;
    CONVOY_CHECK(operand.dtype == first->dtype, "{}: operands are {} and {}, expected one dtype",
                 kernel, name(first->dtype), name(operand.dtype));
  }
  CONVOY_DCHECK(first, "{}: no operand is given", kernel);
  return first->dtype;
}

void check_is(const char* kernel, const char* operand, ConstBuffer buffer, DType dtype) {
  CONVOY_DCHECK(buffer && buffer.dtype == dtype && buffer.layout == kPlain,
                "{}: {} has dtype {} and layout {}, expected {} and plain", kernel, operand,
                name(buffer.dtype), buffer.layout, name(dtype));
}

void fail_dtype(const char* kernel, DType dtype) {
  CONVOY_FAIL(usage, "{}: dtype {} is not supported on ref, expected f32 or f64", kernel,
              name(dtype));
}

}  // namespace convoy::reference
