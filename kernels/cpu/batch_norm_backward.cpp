// The two passes of batch norm's backward: sums over a channel, then the input's gradient, which
// needs them. Each reads the activations once from memory, run by run (see batch_norm.cpp).
#include <algorithm>

#include "kernels/cpu/batch_norm_parts.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/staging.h"

namespace convoy::cpu {
namespace {

// Leaves one of what could tell where a gradient passes the ReLU: bits before y; none without one.
void keep_one(bool relu, ConstBuffer& y, ConstBuffer& mask) {
  if (!relu) mask = {};
  if (!relu || mask) y = {};
}

/// dy, and what tells where it passes the ReLU, in the layout of the runs.
struct PassedRuns {
  PassedRuns(Staging& staging, const BatchNormShape& shape, const Runs& of, ConstBuffer result,
             ConstBuffer mask, ConstBuffer gradient)
      : runs(of),
        words(of),
        y(staging.input_buffer(shape.x(), result)),
        bits(mask.as<std::uint16_t>()),
        dy(staging.input_buffer(shape.x(), gradient)) {}

  template <class T>
  BatchNormPassedOf<T> of_run(std::int64_t i) const {
    const std::int64_t begin = i * runs.length;
    return {dy.as<T>() + begin, words.of_run(bits, i), at(y.as<T>(), begin)};
  }

  Runs runs;
  MaskWords words;
  ConstBuffer y;
  const std::uint16_t* bits;
  ConstBuffer dy;
};

/// Sums of dz and of dz * (x - mean).
struct GradientSums {
  double dz = 0, dz_x = 0;
};

// Those of each run and channel: of dz from `parts` on, then of dz * (x - mean).
void reduce_runs(const PassedRuns& passed, ConstBuffer x, ConstBuffer mean, double* parts) {
  const Runs& runs = passed.runs;
  const std::int64_t sums = runs.count * runs.period;
  std::vector<double> means(static_cast<std::size_t>(runs.blocks * runs.period));
  for (std::int64_t c = 0; c < runs.channels; ++c) means[c] = read(mean, c);
  std::fill_n(parts, 2 * sums, 0.0);
  each_run(runs, x.dtype, [&]<class T>(T, std::int64_t i, std::int64_t begin) {
    double* part = parts + i * runs.period;
    loops_of<T>().batch_norm_reduce(x.as<T>() + begin, passed.of_run<T>(i), runs.length,
                                    runs.period, means.data() + i % runs.blocks * runs.period, part,
                                    part + sums);
  });
}

// Of all images, from what reduce_runs() wrote.
GradientSums sums_of_channel(const Runs& runs, const double* parts, std::int64_t c) {
  const std::int64_t sums = runs.count * runs.period;
  GradientSums all;
  for (std::int64_t i = c / runs.period; i < runs.count; i += runs.blocks) {
    all.dz += parts[i * runs.period + c % runs.period];
    all.dz_x += parts[sums + i * runs.period + c % runs.period];
  }
  return all;
}

// Factors of dx = k_dz * dz + (x - mean) * k_x + k: mean, k_dz, k_x, k. Those of frozen statistics,
// which leave the sums out, are 0 but for k_dz.
LaneFactors gradient_factors(const Runs& runs, const BatchNormStatistics& statistics,
                             double epsilon, ConstBuffer gamma, ConstBuffer sum_dz,
                             ConstBuffer sum_dz_xhat) {
  LaneFactors factors(runs, 4);
  const double count = count_of(statistics);
  for (std::int64_t c = 0; c < runs.channels; ++c) {
    const double rstd = rstd_of(statistics, epsilon, c);
    const double scale = read(gamma, c) * rstd;
    factors.set(c, 1, scale);
    if (!sum_dz) continue;
    const SplitMean mean(read(statistics.mean, c));
    const double slope = -scale * rstd * read(sum_dz_xhat, c) / count;
    factors.set(c, 0, mean.near);
    factors.set(c, 2, slope);
    factors.set(c, 3, -scale * read(sum_dz, c) / count - slope * mean.rest);
  }
  return factors;
}

void apply_gradient(const PassedRuns& passed, ConstBuffer x, const LaneFactors& factors, Buffer dx,
                    Buffer dresidual) {
  each_run(passed.runs, passed.dy.dtype, [&]<class T>(T, std::int64_t i, std::int64_t begin) {
    loops_of<T>().batch_norm_gradient(
        at(x.as<T>(), begin), passed.of_run<T>(i), passed.runs.length,
        {factors.of_run(i, 0), factors.of_run(i, 1), factors.of_run(i, 2), factors.of_run(i, 3)},
        at(dx.as<T>(), begin), at(dresidual.as<T>(), begin));
  });
}

}  // namespace

void batch_norm_backward_reduce(Stream& stream, const BatchNormShape& shape, ConstBuffer x,
                                ConstBuffer y, ConstBuffer mask, ConstBuffer dy,
                                const BatchNormStatistics& statistics, double epsilon, bool relu,
                                Buffer sum_dz, Buffer sum_dz_xhat) {
  const char* kernel = "batch_norm_backward_reduce";
  keep_one(relu, y, mask);
  check_values(kernel, stream, {{"x", x}, {"y", y}, {"dy", dy}});
  require_type(kernel, DType::u8, {{"mask", mask}});
  require_statistics(kernel, {{"sum_dz", sum_dz}, {"sum_dz_xhat", sum_dz_xhat}});
  check_statistics(kernel, statistics);
  const Runs runs(x.layout, shape.n, shape.c, shape.spatial);
  const std::int64_t sums = runs.count * runs.period;
  Staging staging(stream, x.layout, {{shape.x(), y}, {shape.x(), dy}},
                  static_cast<std::size_t>(2 * sums) * sizeof(double), x.dtype);
  const PassedRuns passed(staging, shape, runs, y, mask, dy);
  auto* parts = static_cast<double*>(staging.own());
  host(stream).submit([=] {
    reduce_runs(passed, x, statistics.mean, parts);
    parallel_for(runs.channels, shape.n * kMergeElements, [&](std::int64_t c) {
      const GradientSums all = sums_of_channel(runs, parts, c);
      write(sum_dz, c, all.dz);
      write(sum_dz_xhat, c, all.dz_x * rstd_of(statistics, epsilon, c));
    });
  });
}

void batch_norm_backward_apply(Stream& stream, const BatchNormShape& shape, ConstBuffer x,
                               ConstBuffer y, ConstBuffer mask, ConstBuffer dy,
                               const BatchNormStatistics& statistics, double epsilon, bool relu,
                               ConstBuffer gamma, ConstBuffer sum_dz, ConstBuffer sum_dz_xhat,
                               Buffer dx, Buffer dresidual) {
  const char* kernel = "batch_norm_backward_apply";
  keep_one(relu, y, mask);
  require_type(kernel, DType::u8, {{"mask", mask}});
  CONVOY_DCHECK(!mask || x.layout == dy.layout, "{}: mask of layout {}, dy is in layout {}", kernel,
                x.layout, dy.layout);
  if (!sum_dz) x = {};  // frozen statistics do not depend on it
  check_values(kernel, stream,
               {{"x", x}, {"y", y}, {"dy", dy}, {"dx", dx}, {"dresidual", dresidual}});
  require_values(kernel, stream, {gamma});
  check_statistics(kernel, statistics);
  const Runs runs(dy.layout, shape.n, shape.c, shape.spatial);
  const Shape s = shape.x();
  Staging staging(stream, dy.layout, {{s, x}, {s, y}, {s, dx}, {s, dresidual}}, 0, dy.dtype);
  const ConstBuffer in = staging.input_buffer(s, x);
  const PassedRuns passed(staging, shape, runs, y, mask, dy);
  const Buffer out = staging.output_buffer(s, dx), residual = staging.output_buffer(s, dresidual);
  host(stream).submit([=] {
    const LaneFactors factors =
        gradient_factors(runs, statistics, epsilon, gamma, sum_dz, sum_dz_xhat);
    apply_gradient(passed, in, factors, out, residual);
  });
  staging.finish();
}

}  // namespace convoy::cpu
