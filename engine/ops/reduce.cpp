// Sums over all elements.
#include "engine/autograd/node.h"
#include "engine/ops/ops.h"
#include "engine/ops/support.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

Tensor scaled_sum(const char* op, const Tensor& x, double scale) {
  check_operands(op, {x});
  const ReduceShape shape{1, x.numel(), 1};
  const Tensor input = x.detach().with_layout(kPlain);
  Tensor y = Tensor::empty({}, x.options());
  kernels_of(x).reduce_sum(stream_of(x), shape, scale, input.buffer(), y.buffer());
  auto half = [shape, scale, extents = x.shape()](const Tensor& dy,
                                                  const std::vector<bool>&) -> Gradients {
    Tensor dx = Tensor::empty(extents, dy.options());
    kernels_of(dy).broadcast(stream_of(dy), shape, scale, dy.buffer(), dx.buffer());
    return {dx};
  };
  return record(op, y, {x}, half);
}

}  // namespace

Tensor sum(const Tensor& x) {
  return scaled_sum("sum", x, 1);
}

Tensor mean(const Tensor& x) {
  CONVOY_CHECK(x.defined() && x.numel() > 0, "mean: {} is empty", describe(x));
  return scaled_sum("mean", x, 1.0 / static_cast<double>(x.numel()));
}

}  // namespace convoy
