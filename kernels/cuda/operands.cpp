#include "kernels/cuda/operands.h"

#include <algorithm>

#include "kernels/base/error.h"

namespace convoy::CONVOY_GPU {

namespace {

// The first operand that is not left out, or null.
const ConstBuffer* first_of(std::initializer_list<ConstBuffer> operands) {
  const auto* found = std::find_if(operands.begin(), operands.end(),
                                   [](const ConstBuffer& operand) { return bool(operand); });
  return found == operands.end() ? nullptr : found;
}

}  // namespace

DType common_dtype(const char* kernel, std::initializer_list<ConstBuffer> operands) {
  const ConstBuffer* first = first_of(operands);
  CONVOY_DCHECK(first, "{}: no operand is given", kernel);
  check_same_dtype(kernel, operands);
  check_same_layout(kernel, operands);
  return first->dtype;
}

void check_same_dtype(const char* kernel, std::initializer_list<ConstBuffer> operands) {
  const ConstBuffer* first = first_of(operands);
  for (const ConstBuffer& operand : operands) {
    CONVOY_CHECK(!operand || operand.dtype == first->dtype,
                 "{}: operands are {} and {}, expected one dtype", kernel, name(first->dtype),
                 name(operand.dtype));
  }
}

void check_same_layout(const char* kernel, std::initializer_list<ConstBuffer> operands) {
  const ConstBuffer* first = first_of(operands);
  for (const ConstBuffer& operand : operands) {
    CONVOY_DCHECK(!operand || operand.layout == first->layout,
                  "{}: operands have layouts {} and {}, expected one layout", kernel, first->layout,
                  operand.layout);
  }
}

void check_plain(const char* kernel, std::initializer_list<ConstBuffer> operands) {
  for (const ConstBuffer& operand : operands) {
    CONVOY_DCHECK(!operand || operand.layout == kPlain,
                  "{}: an operand has layout {}, expected plain", kernel, operand.layout);
  }
}

void check_is(const char* kernel, const char* operand, ConstBuffer buffer, DType dtype) {
  CONVOY_DCHECK(buffer && buffer.dtype == dtype && buffer.layout == kPlain,
                "{}: {} has dtype {} and layout {}, expected {} and plain", kernel, operand,
                name(buffer.dtype), buffer.layout, name(dtype));
}

void fail_dtype(const char* kernel, DType dtype, const char* expected) {
  CONVOY_FAIL(usage, "{}: dtype {} is not supported on GPUs, expected {}", kernel, name(dtype),
              expected);
}

}  // namespace convoy::CONVOY_GPU
