// Each column times its own factor.
#include "engine/autograd/node.h"
#include "engine/ops/ops.h"
#include "engine/ops/support.h"
#include "kernels/base/error.h"

namespace convoy {

Tensor row_scale(const Tensor& x, const Tensor& weight) {
  check_rank("row_scale", "x", x, 2);
  check_rank("row_scale", "weight", weight, 1);
  check_operands("row_scale", {x, weight});
  CONVOY_CHECK(x.size(1) == weight.size(0), "row_scale: x has {} columns, weight has {} factors",
               x.size(1), weight.size(0));
  const RowScaleShape shape{x.size(0), x.size(1)};
  const Tensor input = x.detach().with_layout(kPlain);
  Tensor y = Tensor::empty(x.shape(), x.options());
  kernels_of(x).row_scale_forward(stream_of(x), shape, input.buffer(), weight.buffer(), y.buffer());

  auto inputs_half = [shape, w = SavedTensor("row_scale", weight)](
                         const Tensor& dy, const std::vector<bool>& wanted) -> Gradients {
    if (!wanted[0]) return {Tensor()};
    Tensor dx = Tensor::empty(dy.shape(), dy.options());
    kernels_of(dy).row_scale_input_gradient(stream_of(dy), shape, dy.buffer(), w.get().buffer(),
                                            dx.buffer());
    return {dx};
  };
  auto weights_half = [shape, input = SavedTensor("row_scale", input)](
                          const Tensor& dy, const std::vector<bool>&) -> Gradients {
    Tensor dw = Tensor::empty({shape.width}, dy.options());
    kernels_of(dy).row_scale_weight_gradient(stream_of(dy), shape, input.get().buffer(),
                                             dy.buffer(), dw.buffer());
    return {dw};
  };
  return record("row_scale", y, {x}, inputs_half, {weight}, weights_half);
}

}  // namespace convoy
