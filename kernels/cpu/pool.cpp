// Max and average pooling, one image and channel block at a time. Max pooling works in the layout
// of y, which is its index's too; average pooling in the layout of its larger side.
#include "kernels/base/error.h"
#include "kernels/cpu/checks.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/staging.h"

namespace convoy::cpu {
namespace {

PoolGeometry geometry(const char* kernel, const Pool2dShape& s) {
  CONVOY_CHECK(s.padding_h < s.kernel_h && s.padding_w < s.kernel_w,
               "{}: padding {}x{} leaves windows of {}x{} outside the image", kernel, s.padding_h,
               s.padding_w, s.kernel_h, s.kernel_w);
  return {s.h,        s.w,        s.out_h(),   s.out_w(),   s.kernel_h,     s.kernel_w,
          s.stride_h, s.stride_w, s.padding_h, s.padding_w, s.count_padding};
}

void check_index(const char* kernel, const Pool2dShape& s, ConstBuffer index, ConstBuffer y) {
  require_type(kernel, DType::u8, {{"index", index}});
  CONVOY_DCHECK(index.layout == y.layout, "{}: index is in layout {}, y in {}", kernel,
                index.layout, y.layout);
  CONVOY_CHECK(s.kernel_h * s.kernel_w <= 256, "{}: windows of {}x{} have more than 256 places",
               kernel, s.kernel_h, s.kernel_w);
}

/// The runs of both sides of a pooling: those of x and y have the same number.
struct PoolRuns {
  PoolRuns(const Pool2dShape& s, LayoutId layout)
      : x(layout, s.n, s.c, s.h * s.w), y(layout, s.n, s.c, s.out_h() * s.out_w()) {}
  Runs x, y;

  template <class Work>
  void for_each(const Work& work) const {
    parallel_for(x.count, x.length, [&](std::int64_t i) { work(i * x.length, i * y.length); });
  }
};

}  // namespace

void max_pool2d_forward(Stream& stream, const Pool2dShape& shape, ConstBuffer x, Buffer y,
                        Buffer index) {
  require_values("max_pool2d_forward", stream, {x, y});
  require_activation("max_pool2d_forward", {{"x", x}, {"y", y}});
  check_index("max_pool2d_forward", shape, index, y);
  const PoolGeometry g = geometry("max_pool2d_forward", shape);
  Staging staging(stream, y.layout, {{shape.x(), x}, {shape.y(), y}});
  const float* data = staging.input(shape.x(), x);
  float* out = staging.output(shape.y(), y);
  const PoolRuns runs(shape, y.layout);
  host(stream).submit([=] {
    runs.for_each([&](std::int64_t x_at, std::int64_t y_at) {
      loops().max_pool_forward(g, runs.x.period, data + x_at, out + y_at,
                               index.as<std::uint8_t>() + y_at);
    });
  });
  staging.finish();
}

void max_pool2d_backward(Stream& stream, const Pool2dShape& shape, ConstBuffer dy,
                         ConstBuffer index, Buffer dx) {
  require_values("max_pool2d_backward", stream, {dy, dx});
  require_activation("max_pool2d_backward", {{"dy", dy}, {"index", index}, {"dx", dx}});
  require_type("max_pool2d_backward", DType::u8, {{"index", index}});
  const PoolGeometry g = geometry("max_pool2d_backward", shape);
  const LayoutId working = index.layout;
  Staging staging(stream, working, {{shape.y(), dy}, {shape.x(), dx}});
  const float* gradient = staging.input(shape.y(), dy);
  float* out = staging.output(shape.x(), dx);
  const PoolRuns runs(shape, working);
  host(stream).submit([=] {
    runs.for_each([&](std::int64_t x_at, std::int64_t y_at) {
      loops().max_pool_backward(g, runs.x.period, gradient + y_at, index.as<std::uint8_t>() + y_at,
                                out + x_at);
    });
  });
  staging.finish();
}

void avg_pool2d_forward(Stream& stream, const Pool2dShape& shape, ConstBuffer x, Buffer y) {
  require_values("avg_pool2d_forward", stream, {x, y});
  require_activation("avg_pool2d_forward", {{"x", x}, {"y", y}});
  const PoolGeometry g = geometry("avg_pool2d_forward", shape);
  Staging staging(stream, x.layout, {{shape.x(), x}, {shape.y(), y}});
  const float* data = staging.input(shape.x(), x);
  float* out = staging.output(shape.y(), y);
  const PoolRuns runs(shape, x.layout);
  host(stream).submit([=] {
    runs.for_each([&](std::int64_t x_at, std::int64_t y_at) {
      loops().avg_pool_forward(g, runs.x.period, data + x_at, out + y_at);
    });
  });
  staging.finish();
}

void avg_pool2d_backward(Stream& stream, const Pool2dShape& shape, ConstBuffer dy, Buffer dx) {
  require_values("avg_pool2d_backward", stream, {dy, dx});
  require_activation("avg_pool2d_backward", {{"dy", dy}, {"dx", dx}});
  const PoolGeometry g = geometry("avg_pool2d_backward", shape);
  Staging staging(stream, dx.layout, {{shape.y(), dy}, {shape.x(), dx}});
  const float* gradient = staging.input(shape.y(), dy);
  float* out = staging.output(shape.x(), dx);
  const PoolRuns runs(shape, dx.layout);
  host(stream).submit([=] {
    runs.for_each([&](std::int64_t x_at, std::int64_t y_at) {
      loops().avg_pool_backward(g, runs.x.period, gradient + y_at, out + x_at);
    });
  });
  staging.finish();
}

}  // namespace convoy::cpu
