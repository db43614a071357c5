// Linear layers by plain matrix products.
#include "kernels/base/context.h"
#include "kernels/base/host_stream.h"
#include "kernels/cpu/checks.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/staging.h"

namespace convoy::cpu {
namespace {

/// Shapes of the operands of a linear layer.
struct Shapes {
  explicit Shapes(const LinearShape& s)
      : x{s.rows, s.in}, w{s.out, s.in}, b{s.out}, y{s.rows, s.out} {}
  Shape x, w, b, y;
};

std::size_t scratch_bytes(const Stream& stream) {
  return gemm_scratch_bytes(context(stream.device()).threads());
}

void spread_bias(const LinearShape& shape, const float* b, float* y) {
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    for (std::int64_t i = 0; i < shape.out; ++i) y[row * shape.out + i] = b[i];
  }
}

}  // namespace

void linear_forward(Stream& stream, const LinearShape& shape, ConstBuffer x, ConstBuffer w,
                    ConstBuffer b, Buffer y) {
  require_values("linear_forward", stream, {x, w, b, y});
  require_plain("linear_forward", {{"x", x}, {"w", w}, {"b", b}, {"y", y}});
  const Shapes s(shape);
  Staging staging(stream, kPlain, {{s.x, x}, {s.w, w}, {s.b, b}, {s.y, y}}, scratch_bytes(stream));
  const float *in = staging.input(s.x, x), *weight = staging.input(s.w, w),
              *bias = staging.input(s.b, b);
  float* out = staging.output(s.y, y);
  host(stream).submit([=, scratch = staging.own()] {
    if (bias) spread_bias(shape, bias, out);
    gemm(shape.rows, shape.out, shape.in, row_major(in, shape.in), transposed(weight, shape.in),
         bias != nullptr, out, shape.out, scratch);
  });
  staging.finish();
}

void linear_input_gradient(Stream& stream, const LinearShape& shape, ConstBuffer dy, ConstBuffer w,
                           Buffer dx) {
  require_values("linear_input_gradient", stream, {dy, w, dx});
  require_plain("linear_input_gradient", {{"dy", dy}, {"w", w}, {"dx", dx}});
  const Shapes s(shape);
  Staging staging(stream, kPlain, {{s.y, dy}, {s.w, w}, {s.x, dx}}, scratch_bytes(stream));
  const float *gradient = staging.input(s.y, dy), *weight = staging.input(s.w, w);
  float* out = staging.output(s.x, dx);
  host(stream).submit([=, scratch = staging.own()] {
    gemm(shape.rows, shape.in, shape.out, row_major(gradient, shape.out),
         row_major(weight, shape.in), false, out, shape.in, scratch);
  });
  staging.finish();
}

void linear_weight_gradient(Stream& stream, const LinearShape& shape, ConstBuffer x, ConstBuffer dy,
                            Buffer dw, Buffer db) {
  require_values("linear_weight_gradient", stream, {x, dy, dw, db});
  require_plain("linear_weight_gradient", {{"x", x}, {"dy", dy}, {"dw", dw}, {"db", db}});
  const Shapes s(shape);
  Staging staging(stream, kPlain, {{s.x, x}, {s.y, dy}, {s.w, dw}}, scratch_bytes(stream));
  const float *in = staging.input(s.x, x), *gradient = staging.input(s.y, dy);
  float* weight = staging.output(s.w, dw);
  host(stream).submit([=, scratch = staging.own()] {
    gemm(shape.out, shape.in, shape.rows, transposed(gradient, shape.out), row_major(in, shape.in),
         false, weight, shape.in, scratch);
  });
  staging.finish();
  if (db) reduce_sum(stream, {1, shape.rows, shape.out}, 1, dy, db);
}

}  // namespace convoy::cpu
