// Fully connected layer.
#include "engine/autograd/node.h"
#include "engine/ops/ops.h"
#include "engine/ops/support.h"
#include "kernels/base/error.h"

namespace convoy {

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_rank("linear", "x", x, 2);
  check_rank("linear", "weight", weight, 2);
  check_operands("linear", {x}, {weight, bias});
  CONVOY_CHECK(x.size(1) == weight.size(1), "linear: x has {} columns, weight expects {}",
               x.size(1), weight.size(1));
  CONVOY_CHECK(!bias.defined() || bias.shape() == Shape{weight.size(0)},
               "linear: bias has shape {}, expected ({})", to_string(bias.shape()), weight.size(0));
  const LinearShape shape{x.size(0), x.size(1), weight.size(0)};
  const Tensor input = x.detach().with_layout(kPlain);
  const Tensor w = as_operand(weight, x.dtype());
  Tensor y = Tensor::empty({shape.rows, shape.out}, x.options());
  if (has_values(y)) {
    kernels_of(x).linear_forward(stream_of(x), shape, input.buffer(), w.buffer(),
                                 buffer_or_none(bias), y.buffer());
  }

  auto inputs_half = [shape, w = SavedTensor("linear", w.dtype() == weight.dtype() ? weight : w)](
                         const Tensor& dy, const std::vector<bool>& wanted) -> Gradients {
    if (!wanted[0]) return {Tensor()};
    Tensor dx = Tensor::empty({shape.rows, shape.in}, dy.options());
    if (!has_values(dx)) return {dx};
    kernels_of(dy).linear_input_gradient(stream_of(dy), shape, dy.buffer(), w.get().buffer(),
                                         dx.buffer());
    return {dx};
  };
  auto weights_half = [shape, input = SavedTensor("linear", input), options = weight.options()](
                          const Tensor& dy, const std::vector<bool>& wanted) -> Gradients {
    Tensor dw = Tensor::empty({shape.out, shape.in}, options);
    Tensor db = wanted[1] ? Tensor::empty({shape.out}, options) : Tensor();
    if (!has_values(dy)) return zeroed({dw, db});
    kernels_of(dy).linear_weight_gradient(stream_of(dy), shape, input.get().buffer(), dy.buffer(),
                                          dw.buffer(), buffer_or_none(db));
    return {dw, db};
  };
  return record("linear", y, {x}, inputs_half, {weight, bias}, weights_half);
}

}  // namespace convoy
