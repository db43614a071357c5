// Convolution without oneDNN: images are unrolled to columns (c / groups * r * s, out_h * out_w)
// and multiplied, image after image, group after group. Weights are always plain.
#include "kernels/base/context.h"
#include "kernels/cpu/checks.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/staging.h"

namespace convoy::cpu {
namespace {

UnrollGeometry unroll_geometry(const Conv2dShape& s) {
  return {s.h,        s.w,        s.r,         s.s,         s.out_h(),    s.out_w(),
          s.stride_h, s.stride_w, s.padding_h, s.padding_w, s.dilation_h, s.dilation_w};
}

/// Sizes of the products of one image and group.
struct Product {
  explicit Product(const Conv2dShape& s)
      : shape(s),
        geometry(unroll_geometry(s)),
        outputs(s.k / s.groups),
        channels(s.c / s.groups),
        depth(channels * s.r * s.s),
        places(s.out_h() * s.out_w()),
        pixels(s.h * s.w),
        as_it_is(s.r == 1 && s.s == 1 && s.stride_h == 1 && s.stride_w == 1 && s.padding_h == 0 &&
                 s.padding_w == 0) {}

  Conv2dShape shape;
  UnrollGeometry geometry;
  std::int64_t outputs, channels, depth, places, pixels;
  bool as_it_is;  // a 1x1 convolution: the image is its own columns

  std::int64_t column_floats() const { return as_it_is ? 0 : (depth * places + 15) / 16 * 16; }

  const float* columns_of(const float* x, float* columns) const {
    if (as_it_is) return x;
    parallel_for(channels, places * shape.r * shape.s, [&](std::int64_t c) {
      loops().unroll(geometry, x + c * pixels, columns + c * shape.r * shape.s * places);
    });
    return columns;
  }

  void columns_to(const float* columns, float* x) const {
    parallel_for(channels, places * shape.r * shape.s, [&](std::int64_t c) {
      loops().roll(geometry, columns + c * shape.r * shape.s * places, x + c * pixels);
    });
  }

  /// Calls work(x offset, w offset, y offset, first image?) for each image and group.
  template <class Work>
  void for_each(const Work& work) const {
    for (std::int64_t i = 0; i < shape.n * shape.groups; ++i) {
      const std::int64_t group = i % shape.groups;
      work(i * channels * pixels, group * outputs * depth, i * outputs * places, i < shape.groups);
    }
  }
};

/// Plain operands and scratch memory of one call.
class Call {
 public:
  Call(const char* kernel, Stream& stream, const Conv2dShape& s, ConstBuffer x, ConstBuffer w,
       ConstBuffer b, ConstBuffer y)
      : product_(s),
        gemm_bytes_((gemm_scratch_bytes(context(stream.device()).threads()) + 63) / 64 * 64),
        staging_((check(kernel, stream, x, w, b, y), stream), kPlain,
                 {{s.x(), x}, {s.weight(), w}, {{s.k}, b}, {s.y(), y}},
                 gemm_bytes_ + static_cast<std::size_t>(product_.column_floats()) * sizeof(float)) {
  }

  const Product& product() const { return product_; }
  Staging& staging() { return staging_; }
  void* gemm_scratch() const { return staging_.own(); }
  float* columns() const {
    return reinterpret_cast<float*>(static_cast<std::byte*>(staging_.own()) + gemm_bytes_);
  }

 private:
  static void check(const char* kernel, const Stream& stream, ConstBuffer x, ConstBuffer w,
                    ConstBuffer b, ConstBuffer y) {
    require_values(kernel, stream, {x, w, b, y});
    require_activation(kernel, {{"x", x}, {"y", y}});
    require_plain(kernel, {{"w", w}, {"b", b}});
  }

  Product product_;
  std::size_t gemm_bytes_;
  Staging staging_;
};

void spread_bias(const Conv2dShape& s, const float* b, float* y) {
  const std::int64_t places = s.out_h() * s.out_w();
  parallel_for(s.n * s.k, places,
               [=](std::int64_t i) { loops().fill(places, b[i % s.k], y + i * places); });
}

// db[k] = the sum of dy over images and places, images in order.
void bias_gradient(const Conv2dShape& s, const float* dy, float* db) {
  const std::int64_t places = s.out_h() * s.out_w();
  parallel_for(s.k, s.n * places, [=](std::int64_t k) {
    double sum = 0;
    for (std::int64_t n = 0; n < s.n; ++n) sum += loops().sum(places, dy + (n * s.k + k) * places);
    db[k] = static_cast<float>(sum);
  });
}

}  // namespace

Conv2dLayouts conv2d_layouts(const Conv2dShape&, DType dtype) {
  Conv2dLayouts layouts;
  layouts.full_weight = dtype == DType::bf16;
  return layouts;
}

void conv2d_forward(Stream& stream, const Conv2dShape& shape, ConstBuffer x, ConstBuffer w,
                    ConstBuffer b, Buffer y) {
  Call call("conv2d_forward", stream, shape, x, w, b, y);
  const float* in = call.staging().input(shape.x(), x);
  const float* weight = call.staging().input(shape.weight(), w);
  const float* bias = call.staging().input({shape.k}, b);
  float* out = call.staging().output(shape.y(), y);
  host(stream).submit(
      [=, p = call.product(), scratch = call.gemm_scratch(), columns = call.columns()] {
        if (bias) spread_bias(p.shape, bias, out);
        p.for_each([&](std::int64_t x_at, std::int64_t w_at, std::int64_t y_at, bool) {
          const float* unrolled = p.columns_of(in + x_at, columns);
          gemm(p.outputs, p.places, p.depth, row_major(weight + w_at, p.depth),
               row_major(unrolled, p.places), bias != nullptr, out + y_at, p.places, scratch);
        });
      });
  call.staging().finish();
}

void conv2d_input_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer dy, ConstBuffer w,
                           Buffer dx) {
  Call call("conv2d_input_gradient", stream, shape, dx, w, {}, dy);
  const float* gradient = call.staging().input(shape.y(), dy);
  const float* weight = call.staging().input(shape.weight(), w);
  float* out = call.staging().output(shape.x(), dx);
  host(stream).submit(
      [=, p = call.product(), scratch = call.gemm_scratch(), columns = call.columns()] {
        p.for_each([&](std::int64_t x_at, std::int64_t w_at, std::int64_t y_at, bool) {
          float* target = p.as_it_is ? out + x_at : columns;
          gemm(p.depth, p.places, p.outputs, transposed(weight + w_at, p.depth),
               row_major(gradient + y_at, p.places), false, target, p.places, scratch);
          if (!p.as_it_is) p.columns_to(columns, out + x_at);
        });
      });
  call.staging().finish();
}

void conv2d_weight_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer x, ConstBuffer dy,
                            Buffer dw, Buffer db) {
  Call call("conv2d_weight_gradient", stream, shape, x, dw, db, dy);
  const float* in = call.staging().input(shape.x(), x);
  const float* gradient = call.staging().input(shape.y(), dy);
  float* weight = call.staging().output(shape.weight(), dw);
  float* bias = call.staging().output({shape.k}, db);
  host(stream).submit(
      [=, p = call.product(), scratch = call.gemm_scratch(), columns = call.columns()] {
        p.for_each([&](std::int64_t x_at, std::int64_t w_at, std::int64_t y_at, bool first) {
          const float* unrolled = p.columns_of(in + x_at, columns);
          gemm(p.outputs, p.depth, p.places, row_major(gradient + y_at, p.places),
               transposed(unrolled, p.places), !first, weight + w_at, p.depth, scratch);
        });
        // Without images nothing has been written.
        if (p.shape.n == 0) loops().fill(p.shape.weight().count(), 0, weight);
        if (bias) bias_gradient(p.shape, gradient, bias);
      });
  call.staging().finish();
}

}  // namespace convoy::cpu
