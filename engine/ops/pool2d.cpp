// Pooling. The layout of x is kept, but where one place is left: that lies row-major.
#include "engine/autograd/node.h"
#include "engine/ops/ops.h"
#include "engine/ops/support.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

Pool2dShape shape_of(const char* op, const Tensor& x, const Pool2dOptions& o) {
  check_rank(op, "x", x, 4);
  check_operands(op, {x});
  const Pair stride = o.stride.value_or(o.kernel);
  CONVOY_CHECK(o.kernel.h >= 1 && o.kernel.w >= 1 && stride.h >= 1 && stride.w >= 1,
               "{}: kernel {}x{}, stride {}x{}: expected at least 1", op, o.kernel.h, o.kernel.w,
               stride.h, stride.w);
  CONVOY_CHECK(o.padding.h >= 0 && o.padding.w >= 0 && 2 * o.padding.h <= o.kernel.h &&
                   2 * o.padding.w <= o.kernel.w,
               "{}: padding {}x{} must be from 0 to half the kernel {}x{}", op, o.padding.h,
               o.padding.w, o.kernel.h, o.kernel.w);
  CONVOY_CHECK(
      x.size(2) + 2 * o.padding.h >= o.kernel.h && x.size(3) + 2 * o.padding.w >= o.kernel.w,
      "{}: kernel {}x{} is larger than the padded x {}", op, o.kernel.h, o.kernel.w,
      to_string(x.shape()));
  return {x.size(0), x.size(1), x.size(2),   x.size(3),   o.kernel.h,     o.kernel.w,
          stride.h,  stride.w,  o.padding.h, o.padding.w, o.count_padding};
}

LayoutId output_layout(const Tensor& x, const Pool2dShape& shape) {
  return shape.out_h() * shape.out_w() == 1 ? kPlain : x.layout();
}

}  // namespace

Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options) {
  const Pool2dShape shape = shape_of("max_pool2d", x, options);
  CONVOY_CHECK(shape.kernel_h * shape.kernel_w <= 256,
               "max_pool2d: kernel {}x{} has more than 256 places", shape.kernel_h, shape.kernel_w);
  const LayoutId layout = output_layout(x, shape);
  Tensor y = Tensor::empty(shape.y(), x.options(), layout);
  Tensor index = Tensor::empty(shape.y(), {DType::u8, x.device()}, layout);
  if (has_values(x)) {
    kernels_of(x).max_pool2d_forward(stream_of(x), shape, x.buffer(), y.buffer(), index.buffer());
  }
  auto half = [shape, places = SavedTensor("max_pool2d", index), x_layout = x.layout()](
                  const Tensor& dy, const std::vector<bool>&) -> Gradients {
    Tensor dx = Tensor::empty(shape.x(), dy.options(), x_layout);
    if (!has_values(dx)) return {dx};
    kernels_of(dy).max_pool2d_backward(stream_of(dy), shape, dy.buffer(), places.get().buffer(),
                                       dx.buffer());
    return {dx};
  };
  return record("max_pool2d", y, {x}, half);
}

Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options) {
  const Pool2dShape shape = shape_of("avg_pool2d", x, options);
  Tensor y = Tensor::empty(shape.y(), x.options(), output_layout(x, shape));
  if (has_values(x)) {
    kernels_of(x).avg_pool2d_forward(stream_of(x), shape, x.buffer(), y.buffer());
  }
  auto half = [shape, x_layout = x.layout()](const Tensor& dy,
                                             const std::vector<bool>&) -> Gradients {
    Tensor dx = Tensor::empty(shape.x(), dy.options(), x_layout);
    if (!has_values(dx)) return {dx};
    kernels_of(dy).avg_pool2d_backward(stream_of(dy), shape, dy.buffer(), dx.buffer());
    return {dx};
  };
  return record("avg_pool2d", y, {x}, half);
}

Tensor global_avg_pool2d(const Tensor& x) {
  check_rank("global_avg_pool2d", "x", x, 4);
  Pool2dOptions whole;
  whole.kernel = {x.size(2), x.size(3)};
  return avg_pool2d(x, whole);
}

}  // namespace convoy
