// Linear layers as matrix products of oneDNN; transposes are strides, so nothing is copied.
#include "kernels/cpu/checks.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/staging.h"

namespace convoy::cpu {
namespace {

using Desc = dnnl::memory::desc;

/// A matrix stored row-major, or the transpose of one.
Desc matrix(std::int64_t rows, std::int64_t columns, bool transposed = false) {
  const dnnl::memory::dims strides =
      transposed ? dnnl::memory::dims{1, rows} : dnnl::memory::dims{columns, 1};
  return {{rows, columns}, dnnl::memory::data_type::f32, strides};
}

std::shared_ptr<const Program> make_product(const Desc& a, const Desc& b, const Desc& bias,
                                            const Desc& c, int threads) {
  const ThreadsScope scope(threads);
  const dnnl::matmul::primitive_desc desc(engine(), a, b, bias, c, attributes());
  auto program = std::make_shared<Program>();
  std::vector<std::pair<int, int>> arguments = {{DNNL_ARG_SRC, program->external(a)},
                                                {DNNL_ARG_WEIGHTS, program->external(b)},
                                                {DNNL_ARG_DST, program->external(c)}};
  if (bias.get_ndims() > 0) arguments.emplace_back(DNNL_ARG_BIAS, program->external(bias));
  program->add(dnnl::matmul(desc), std::move(arguments), desc.scratchpad_desc());
  return program;
}

/// A matrix of a product: what oneDNN takes it for, and where it is.
struct Matrix {
  Desc desc;
  ConstBuffer buffer;
};

Shape shape_of(const Matrix& matrix) {
  if (!matrix.buffer) return {};
  return {matrix.desc.get_dims()[0], matrix.desc.get_dims()[1]};
}

/// c = a * b + bias, one of the three products of a linear layer; `kind` tells them apart in the
/// cache. Operands in bf16 go through scratch memory as floats.
void submit_product(Stream& stream, const char* kernel, int kind, const LinearShape& s,
                    const Matrix& a, const Matrix& b, const Matrix& bias, const Matrix& c) {
  static auto* programs = new Cache<std::shared_ptr<const Program>>;
  const int threads = threads_of(stream);
  std::shared_ptr<const Program> program;
  guarded(kernel, [&] {
    program = programs->get({kind, s.rows, s.in, s.out, bool(bias.buffer), threads}, [&] {
      return make_product(a.desc, b.desc, bias.desc, c.desc, threads);
    });
  });
  Staging staging(stream, Staging::kAsItLies,
                  {{shape_of(a), a.buffer},
                   {shape_of(b), b.buffer},
                   {shape_of(c), c.buffer},
                   {shape_of(bias), bias.buffer}},
                  program->scratch_bytes());
  auto operand = [&](const Matrix& m, bool written) {
    return staging.operand(shape_of(m), m.buffer, written);
  };
  std::vector<void*> externals = {operand(a, false), operand(b, false), operand(c, true)};
  if (bias.buffer) externals.push_back(operand(bias, false));
  submit(stream, kernel, std::move(program), std::move(externals), staging.own());
  staging.finish();
}

}  // namespace

void linear_forward(Stream& stream, const LinearShape& shape, ConstBuffer x, ConstBuffer w,
                    ConstBuffer b, Buffer y) {
  require_values("linear_forward", stream, {x, w, b, y});
  require_plain("linear_forward", {{"x", x}, {"w", w}, {"b", b}, {"y", y}});
  submit_product(stream, "linear_forward", 0, shape, {matrix(shape.rows, shape.in), x},
                 {matrix(shape.in, shape.out, true), w}, {b ? matrix(1, shape.out) : Desc(), b},
                 {matrix(shape.rows, shape.out), y});
}

void linear_input_gradient(Stream& stream, const LinearShape& shape, ConstBuffer dy, ConstBuffer w,
                           Buffer dx) {
  require_values("linear_input_gradient", stream, {dy, w, dx});
  require_plain("linear_input_gradient", {{"dy", dy}, {"w", w}, {"dx", dx}});
  submit_product(stream, "linear_input_gradient", 1, shape, {matrix(shape.rows, shape.out), dy},
                 {matrix(shape.out, shape.in), w}, {}, {matrix(shape.rows, shape.in), dx});
}

void linear_weight_gradient(Stream& stream, const LinearShape& shape, ConstBuffer x, ConstBuffer dy,
                            Buffer dw, Buffer db) {
  require_values("linear_weight_gradient", stream, {x, dy, dw, db});
  require_plain("linear_weight_gradient", {{"x", x}, {"dy", dy}, {"dw", dw}, {"db", db}});
  submit_product(stream, "linear_weight_gradient", 2, shape,
                 {matrix(shape.out, shape.rows, true), dy}, {matrix(shape.rows, shape.in), x}, {},
                 {matrix(shape.out, shape.in), dw});
  if (db) reduce_sum(stream, {1, shape.rows, shape.out}, 1, dy, db);
}

}  // namespace convoy::cpu
