// Sums over one extent, their reverse, and sums of squares. Long sums are cut into parts of a fixed
// size whose sums in double are added in order.
#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/base/host_stream.h"
#include "kernels/cpu/checks.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/staging.h"
#include "kernels/cpu/values.h"

namespace convoy::cpu {
namespace {

constexpr std::int64_t kTileColumns = 64;

// inner == 1: each output is the sum of contiguous elements.
void sum_contiguous(const ReduceShape& shape, double factor, const float* x, float* y,
                    double* parts) {
  const std::int64_t pieces = parts_of(shape.reduced);
  const std::int64_t size = std::min(shape.reduced, kPartElements);
  parallel_for(shape.outer * pieces, size, [&](std::int64_t i) {
    const std::int64_t row = i / pieces, begin = i % pieces * kPartElements;
    parts[i] = loops().sum(std::min(kPartElements, shape.reduced - begin),
                           x + row * shape.reduced + begin);
  });
  for (std::int64_t row = 0; row < shape.outer; ++row) {
    double sum = 0;
    for (std::int64_t i = 0; i < pieces; ++i) sum += parts[row * pieces + i];
    y[row] = static_cast<float>(sum * factor);
  }
}

void sum_columns(const ReduceShape& shape, double factor, const float* x, float* y) {
  const std::int64_t tiles = (shape.inner + kTileColumns - 1) / kTileColumns;
  parallel_for(shape.outer * tiles, shape.reduced * kTileColumns, [&](std::int64_t i) {
    const std::int64_t row = i / tiles, begin = i % tiles * kTileColumns;
    loops().sum_rows(shape.reduced, shape.inner, std::min(kTileColumns, shape.inner - begin),
                     factor, x + row * shape.reduced * shape.inner + begin,
                     y + row * shape.inner + begin);
  });
}

void spread(const ReduceShape& shape, float factor, const float* x, float* y) {
  parallel_for(shape.outer, shape.reduced * shape.inner, [&](std::int64_t row) {
    const float* source = x + row * shape.inner;
    float* target = y + row * shape.reduced * shape.inner;
    if (shape.inner == 1) {
      loops().fill(shape.reduced, *source * factor, target);
      return;
    }
    for (std::int64_t i = 0; i < shape.reduced; ++i, target += shape.inner) {
      loops().scale(shape.inner, factor, source, target);
    }
  });
}

Shape whole(const ReduceShape& shape) {
  return {shape.outer, shape.reduced, shape.inner};
}

Shape sums_of(const ReduceShape& shape) {
  return {shape.outer, shape.inner};
}

// Of some elements of x, in f32 or bf16.
double squares_of(ConstBuffer x, std::int64_t begin, std::int64_t size) {
  if (x.dtype != DType::bf16) return loops().sum_of_squares(size, x.as<float>() + begin);
  double sum = 0;
  for (std::int64_t i = 0; i < size; i += kChunk) {
    const std::int64_t now = std::min(kChunk, size - i);
    const FloatChunk<1, 0> chunk({x}, {}, begin + i, now);
    sum += loops().sum_of_squares(now, chunk.inputs[0]);
  }
  return sum;
}

}  // namespace

void reduce_sum(Stream& stream, const ReduceShape& shape, double scale, ConstBuffer x, Buffer y) {
  require_values("reduce_sum", stream, {x, y});
  require_plain("reduce_sum", {{"x", x}, {"y", y}});
  const std::int64_t parts = shape.inner == 1 ? shape.outer * parts_of(shape.reduced) : 1;
  Staging staging(stream, kPlain, {{whole(shape), x}, {sums_of(shape), y}},
                  static_cast<std::size_t>(parts) * sizeof(double));
  const float* in = staging.input(whole(shape), x);
  float* out = staging.output(sums_of(shape), y);
  host(stream).submit([=, sums = static_cast<double*>(staging.own())] {
    if (shape.inner == 1) {
      sum_contiguous(shape, scale, in, out, sums);
    } else {
      sum_columns(shape, scale, in, out);
    }
  });
  staging.finish();
}

void broadcast(Stream& stream, const ReduceShape& shape, double scale, ConstBuffer x, Buffer y) {
  require_values("broadcast", stream, {x, y});
  require_plain("broadcast", {{"x", x}, {"y", y}});
  Staging staging(stream, kPlain, {{sums_of(shape), x}, {whole(shape), y}});
  const float* in = staging.input(sums_of(shape), x);
  float* out = staging.output(whole(shape), y);
  host(stream).submit([=] { spread(shape, static_cast<float>(scale), in, out); });
  staging.finish();
}

void sum_of_squares(Stream& stream, const std::vector<ConstBuffer>& x,
                    const std::vector<std::int64_t>& counts, Buffer result) {
  for (const ConstBuffer& buffer : x) require_values("sum_of_squares", stream, {buffer});
  require_type("sum_of_squares", DType::f64, {{"result", result}});
  CONVOY_DCHECK(x.size() == counts.size(), "sum_of_squares: {} buffers, {} counts", x.size(),
                counts.size());
  std::int64_t most = 1;
  for (std::int64_t count : counts) most = std::max(most, parts_of(count));
  auto* parts =
      static_cast<double*>(stream.scratch(static_cast<std::size_t>(most) * sizeof(double)));
  host(stream).submit([=] {
    for (std::size_t i = 0; i < x.size(); ++i) {
      parallel_parts(counts[i], [&](std::int64_t part, std::int64_t begin, std::int64_t size) {
        parts[part] = squares_of(x[i], begin, size);
      });
      double sum = 0;
      for (std::int64_t part = 0; part < parts_of(counts[i]); ++part) sum += parts[part];
      result.as<double>()[i] = sum;
    }
  });
}

}  // namespace convoy::cpu
