#include "engine/ops/support.h"

#include "kernels/base/error.h"

namespace convoy {

std::vector<Tensor> zeroed(std::vector<Tensor> gradients) {
  for (Tensor& gradient : gradients) {
    if (gradient.defined()) gradient.zero_();
  }
  return gradients;
}

void check_operands(const char* op, std::initializer_list<Tensor> tensors) {
  check_same_device(op, tensors);
  const Tensor* first = nullptr;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    CONVOY_CHECK(is_floating(tensor.dtype()), "{}: {} is not of a floating type", op,
                 describe(tensor));
    if (!first) first = &tensor;
    CONVOY_CHECK(tensor.dtype() == first->dtype(), "{}: operands are of types {} and {}", op,
                 name(first->dtype()), name(tensor.dtype()));
  }
}

void check_operands(const char* op, std::initializer_list<Tensor> values,
                    std::initializer_list<Tensor> parameters) {
  check_operands(op, values);
  check_operands(op, parameters);
  for (const Tensor& parameter : parameters) {
    if (!parameter.defined()) continue;
    const Tensor& x = *values.begin();
    check_same_device(op, {x, parameter});
    CONVOY_CHECK(parameter.dtype() == parameter_type(x.dtype()) || parameter.dtype() == x.dtype(),
                 "{}: a parameter is of type {}, values are of type {}", op,
                 name(parameter.dtype()), name(x.dtype()));
  }
}

Tensor as_operand(const Tensor& parameter, DType type) {
  if (parameter.dtype() == type) return parameter.detach();
  Tensor operand = Tensor::empty(parameter.shape(), {type, parameter.device()}, parameter.layout());
  kernels_of(parameter).cast(stream_of(parameter), parameter.stored_count(), parameter.buffer(),
                             operand.buffer());
  return operand;
}

void check_rank(const char* op, const char* operand, const Tensor& x, int rank) {
  CONVOY_CHECK(x.defined(), "{}: {} is undefined", op, operand);
  CONVOY_CHECK(x.shape().rank() == rank, "{}: {} has shape {}, expected {} dimensions", op, operand,
               to_string(x.shape()), rank);
}

}  // namespace convoy
