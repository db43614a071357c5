// Linear layers by plain matrix products.
#include "kernels/base/context.h"
#include "kernels/base/host_stream.h"
#include "kernels/cpu/checks.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/kernels.h"

namespace convoy::cpu {
namespace {

void* product_scratch(Stream& stream) {
  const std::size_t bytes = gemm_scratch_bytes(context(stream.device()).threads());
  return bytes > 0 ? stream.scratch(bytes) : nullptr;
}

void spread_bias(const LinearShape& shape, const float* b, float* y) {
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    for (std::int64_t i = 0; i < shape.out; ++i) y[row * shape.out + i] = b[i];
  }
}

}  // namespace

void linear_forward(Stream& stream, const LinearShape& shape, ConstBuffer x, ConstBuffer w,
                    ConstBuffer b, Buffer y) {
  require_f32("linear_forward", stream, {x, w, b, y});
  require_plain("linear_forward", {{"x", x}, {"w", w}, {"b", b}, {"y", y}});
  void* scratch = product_scratch(stream);
  host(stream).submit([=] {
    if (b) spread_bias(shape, b.as<float>(), y.as<float>());
    gemm(shape.rows, shape.out, shape.in, row_major(x.as<float>(), shape.in),
         transposed(w.as<float>(), shape.in), bool(b), y.as<float>(), shape.out, scratch);
  });
}

void linear_input_gradient(Stream& stream, const LinearShape& shape, ConstBuffer dy, ConstBuffer w,
                           Buffer dx) {
  require_f32("linear_input_gradient", stream, {dy, w, dx});
  require_plain("linear_input_gradient", {{"dy", dy}, {"w", w}, {"dx", dx}});
  void* scratch = product_scratch(stream);
  host(stream).submit([=] {
    gemm(shape.rows, shape.in, shape.out, row_major(dy.as<float>(), shape.out),
         row_major(w.as<float>(), shape.in), false, dx.as<float>(), shape.in, scratch);
  });
}

void linear_weight_gradient(Stream& stream, const LinearShape& shape, ConstBuffer x, ConstBuffer dy,
                            Buffer dw, Buffer db) {
  require_f32("linear_weight_gradient", stream, {x, dy, dw, db});
  require_plain("linear_weight_gradient", {{"x", x}, {"dy", dy}, {"dw", dw}, {"db", db}});
  void* scratch = product_scratch(stream);
  host(stream).submit([=] {
    gemm(shape.out, shape.in, shape.rows, transposed(dy.as<float>(), shape.out),
         row_major(x.as<float>(), shape.in), false, dw.as<float>(), shape.in, scratch);
  });
  if (db) reduce_sum(stream, {1, shape.rows, shape.out}, 1, dy, db);
}

}  // namespace convoy::cpu
