// Moves between devices and element types. Backward moves the gradient back.
#include "engine/autograd/node.h"
#include "engine/ops/ops.h"
#include "engine/ops/support.h"
#include "kernels/base/error.h"

namespace convoy {

Tensor Tensor::to(const Device& target) const {
  if (target == device()) return *this;
  Tensor y = empty(shape(), {dtype(), target});
  y.copy_(detach());
  auto half = [home = device()](const Tensor& dy, const std::vector<bool>&) -> Gradients {
    return {dy.to(home)};
  };
  return record("to", y, {*this}, half);
}

Tensor Tensor::to(DType target) const {
  if (target == dtype()) return *this;
  const Tensor input = detach().with_layout(kPlain);
  Tensor y = empty(shape(), {target, device()});
  kernels_of(input).cast(stream_of(input), numel(), input.buffer(), y.buffer());
  auto half = [home = dtype()](const Tensor& dy, const std::vector<bool>&) -> Gradients {
    return {dy.to(home)};
  };
  return is_floating(target) ? record("to", y, {*this}, half) : y;
}

}  // namespace convoy
