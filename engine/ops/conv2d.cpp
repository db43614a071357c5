// Convolution. Runs in the layouts that the backend likes best; a row-major weight that is a leaf
// moves into its layout for good, so that it is reordered once and not in every step.
#include "engine/autograd/node.h"
#include "engine/ops/ops.h"
#include "engine/ops/support.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

Conv2dShape shape_of(const Tensor& x, const Tensor& weight, const Conv2dOptions& options) {
  Conv2dShape shape{x.size(0),      x.size(1),      x.size(2),     x.size(3),
                    weight.size(0), weight.size(2), weight.size(3)};
  shape.stride_h = options.stride.h;
  shape.stride_w = options.stride.w;
  shape.padding_h = options.padding.h;
  shape.padding_w = options.padding.w;
  shape.dilation_h = options.dilation.h;
  shape.dilation_w = options.dilation.w;
  shape.groups = options.groups;
  return shape;
}

void check(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& o) {
  check_rank("conv2d", "x", x, 4);
  check_rank("conv2d", "weight", weight, 4);
  check_operands("conv2d", {x}, {weight, bias});
  CONVOY_CHECK(o.stride.h >= 1 && o.stride.w >= 1 && o.dilation.h >= 1 && o.dilation.w >= 1 &&
                   o.padding.h >= 0 && o.padding.w >= 0 && o.groups >= 1,
               "conv2d: stride {}x{}, dilation {}x{}, padding {}x{}, groups {}: expected at least "
               "1, 1, 0, 1",
               o.stride.h, o.stride.w, o.dilation.h, o.dilation.w, o.padding.h, o.padding.w,
               o.groups);
  CONVOY_CHECK(x.size(1) == weight.size(1) * o.groups,
               "conv2d: x has {} channels, weight expects {} ({} groups of {})", x.size(1),
               weight.size(1) * o.groups, o.groups, weight.size(1));
  CONVOY_CHECK(weight.size(0) % o.groups == 0, "conv2d: {} output channels in {} groups",
               weight.size(0), o.groups);
  CONVOY_CHECK(!bias.defined() || bias.shape() == Shape{weight.size(0)},
               "conv2d: bias has shape {}, expected ({})", to_string(bias.shape()), weight.size(0));
  const Conv2dShape s = shape_of(x, weight, o);
  CONVOY_CHECK(x.shape().with(0, 1).count() > 0 && has_values(weight),
               "conv2d: x {} or weight {} is empty", to_string(x.shape()),
               to_string(weight.shape()));
  CONVOY_CHECK(s.h + 2 * s.padding_h >= s.dilation_h * (s.r - 1) + 1 &&
                   s.w + 2 * s.padding_w >= s.dilation_w * (s.s - 1) + 1,
               "conv2d: weight {} is larger than the padded x {}", to_string(weight.shape()),
               to_string(x.shape()));
}

// Without images there is nothing to like: x and w stay as they are.
Conv2dLayouts layouts_for(const Conv2dShape& shape, const Tensor& x, const Tensor& weight) {
  if (!has_values(x)) return {x.layout(), weight.layout(), kPlain};
  return kernels_of(x).conv2d_layouts(shape, x.dtype());
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& options) {
  check(x, weight, bias, options);
  const Conv2dShape shape = shape_of(x, weight, options);
  const Conv2dLayouts layouts = layouts_for(shape, x, weight);
  if (weight.is_leaf() && weight.layout() == kPlain) Tensor(weight).relayout_(layouts.weight);
  const Tensor input = x.detach().with_layout(layouts.x);
  const Tensor w = layouts.full_weight ? weight.detach() : as_operand(weight, x.dtype());
  Tensor y = Tensor::empty(shape.y(), x.options(), layouts.y);
  if (has_values(x)) {
    kernels_of(x).conv2d_forward(stream_of(x), shape, input.buffer(), w.buffer(),
                                 buffer_or_none(bias), y.buffer());
  }

  auto inputs_half = [shape, w = SavedTensor("conv2d", w.dtype() == weight.dtype() ? weight : w),
                      layout = x.layout()](const Tensor& dy,
                                           const std::vector<bool>& wanted) -> Gradients {
    if (!wanted[0]) return {Tensor()};
    Tensor dx = Tensor::empty(shape.x(), dy.options(), layout);
    if (!has_values(dx)) return {dx};
    kernels_of(dy).conv2d_input_gradient(stream_of(dy), shape, dy.buffer(), w.get().buffer(),
                                         dx.buffer());
    return {dx};
  };
  auto weights_half = [shape, input = SavedTensor::remade("conv2d", input),
                       layout = weight.layout(), options = weight.options()](
                          const Tensor& dy, const std::vector<bool>& wanted) -> Gradients {
    Tensor dw = Tensor::empty(shape.weight(), options, layout);
    Tensor db = wanted[1] ? Tensor::empty({shape.k}, options) : Tensor();
    if (!has_values(dy)) return zeroed({dw, db});
    kernels_of(dy).conv2d_weight_gradient(stream_of(dy), shape, input.get().buffer(), dy.buffer(),
                                          dw.buffer(), buffer_or_none(db));
    return {dw, db};
  };
  return record("conv2d", y, {x}, inputs_half, {weight, bias}, weights_half);
}

}  // namespace convoy
