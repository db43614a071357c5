// Batch norm: statistics, apply, and the two passes of backward. Each reads the activations once
// from memory, run by run (see layout.h), and all layouts take the same way: factors are laid out
// as 16 lanes per channel block. Sums are made per run and added over images in order.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "kernels/base/bf16.h"
#include "kernels/base/error.h"
#include "kernels/cpu/checks.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/staging.h"
#include "kernels/cpu/values.h"

namespace convoy::cpu {
namespace {

// What adding one run's sums costs, in elements of a plain loop.
constexpr std::int64_t kMergeElements = 16;

double read(ConstBuffer buffer, std::int64_t i) {
  if (buffer.dtype == DType::bf16) return static_cast<float>(buffer.as<Bf16>()[i]);
  return buffer.dtype == DType::f64 ? buffer.as<double>()[i]
                                    : static_cast<double>(buffer.as<float>()[i]);
}

void write(Buffer buffer, std::int64_t i, double value) {
  if (buffer.dtype == DType::f64) {
    buffer.as<double>()[i] = value;
  } else {
    buffer.as<float>()[i] = static_cast<float>(value);
  }
}

template <class T>
T* at(T* data, std::int64_t begin) {
  return data ? data + begin : nullptr;
}

/// Mean and sum of squared deviations of `count` values; += is Chan's formula.
struct Moments {
  double mean = 0, m2 = 0, count = 0;
  Moments& operator+=(const Moments& part) {
    if (part.count == 0) return *this;
    const double total = count + part.count;
    const double delta = part.mean - mean;
    m2 += part.m2 + delta * delta * (count * part.count / total);
    mean = count == 0 ? part.mean : mean + delta * (part.count / total);
    count = total;
    return *this;
  }
};

template <class T>
void run_statistics(const T* x, std::int64_t length, int period, Moments* result) {
  const std::int64_t positions = length / period;
  const auto count = static_cast<double>(positions);
  double mean[kRowLanes], m2[kRowLanes];
  loops_of<T>().batch_norm_statistics(x, length, period, mean, m2);
  for (int c = 0; c < period; ++c) {
    result[c] = {mean[c], m2[c], count};
  }
}

/// Factors of all channel blocks, 16 lanes each; `value` of lane l of a block is that of channel
/// l % period. Lanes of padding are zero, so that padding stays zero.
class LaneFactors {
 public:
  LaneFactors(const Runs& runs, int kinds)
      : runs_(runs), kinds_(kinds), values_(runs.blocks * kinds * kRowLanes) {}

  void set(std::int64_t channel, int kind, double value) {
    float* lanes = block(channel / runs_.period, kind);
    for (std::int64_t l = channel % runs_.period; l < kRowLanes; l += runs_.period) {
      lanes[l] = static_cast<float>(value);
    }
  }
  /// The 16 lanes of one kind of factor for the block of run `i`.
  const float* of_run(std::int64_t i, int kind) const {
    return values_.data() + (i % runs_.blocks * kinds_ + kind) * kRowLanes;
  }

 private:
  float* block(std::int64_t b, int kind) {
    return values_.data() + (b * kinds_ + kind) * kRowLanes;
  }

  Runs runs_;
  int kinds_;
  std::vector<float> values_;
};

/// Where the ReLU's bits of a run lie: 16 elements to a word, each run on words of its own.
struct MaskWords {
  explicit MaskWords(const Runs& runs)
      : count(runs.count), per_run((runs.length + kRowLanes - 1) / kRowLanes) {}
  std::size_t bytes() const {
    return static_cast<std::size_t>(count * per_run) * sizeof(std::uint16_t);
  }
  template <class Word>
  Word* of_run(Word* words, std::int64_t i) const {
    return words ? words + i * per_run : nullptr;
  }
  std::int64_t count, per_run;
};

double count_of(const BatchNormStatistics& statistics) {
  return statistics.device_count ? *statistics.device_count.as<double>() : statistics.count;
}

double rstd_of(const BatchNormStatistics& statistics, double epsilon, std::int64_t c) {
  return 1 / std::sqrt(read(statistics.m2, c) / count_of(statistics) + epsilon);
}

/// The float nearest to a mean, and what that leaves out.
struct SplitMean {
  explicit SplitMean(double mean)
      : near(static_cast<double>(static_cast<float>(mean))), rest(mean - near) {}
  double near, rest;
};

void check_statistics(const char* kernel, const BatchNormStatistics& statistics) {
  require_statistics(kernel, {{"mean", statistics.mean}, {"m2", statistics.m2}});
  require_type(kernel, DType::f64, {{"device_count", statistics.device_count}});
  CONVOY_DCHECK(statistics.device_count || statistics.count > 0, "{}: statistics of {} values",
                kernel, statistics.count);
}

/// Both are PackedStatistics.
void merge_part(std::int64_t channels, const double* part, double* total) {
  if (part[2 * channels] == 0) return;
  auto read = [channels](const double* packed, std::int64_t c) {
    return Moments{packed[c], packed[channels + c], packed[2 * channels]};
  };
  for (std::int64_t c = 0; c < channels; ++c) {
    Moments all = read(total, c);
    if (all.count == 0) all = {};
    all += read(part, c);
    total[c] = all.mean;
    total[channels + c] = all.m2;
  }
  total[2 * channels] += part[2 * channels];
}

}  // namespace

void batch_norm_statistics(Stream& stream, const BatchNormShape& shape, ConstBuffer x, Buffer mean,
                           Buffer m2) {
  require_values("batch_norm_statistics", stream, {x});
  require_activation("batch_norm_statistics", {{"x", x}});
  require_statistics("batch_norm_statistics", {{"mean", mean}, {"m2", m2}});
  const Runs runs(x.layout, shape.n, shape.c, shape.spatial);
  auto* parts = static_cast<Moments*>(
      stream.scratch(static_cast<std::size_t>(runs.count * runs.period) * sizeof(Moments)));
  host(stream).submit([=] {
    with_values(x.dtype, [&]<class T>(T) {
      parallel_for(runs.count, runs.length, [&](std::int64_t i) {
        run_statistics(x.as<T>() + i * runs.length, runs.length, runs.period,
                       parts + i * runs.period);
      });
    });
    parallel_for(runs.channels, shape.n * kMergeElements, [&](std::int64_t c) {
      Moments all;
      for (std::int64_t i = c / runs.period; i < runs.count; i += runs.blocks) {
        all += parts[i * runs.period + c % runs.period];
      }
      write(mean, c, all.mean);
      write(m2, c, all.m2);
    });
  });
}

void batch_norm_merge(Stream& stream, const PackedStatistics& packed, std::int64_t parts,
                      ConstBuffer from, Buffer total) {
  require_type("batch_norm_merge", DType::f64, {{"the parts", from}, {"the total", total}});
  host(stream).submit([=, part = from.as<double>(), all = total.as<double>()] {
    for (std::int64_t i = 0; i < parts; ++i) {
      merge_part(packed.channels, part + i * packed.values(), all);
    }
    CONVOY_CHECK(all[2 * packed.channels] != 1,
                 "batch_norm: 1 value per channel in training, over all replicas");
  });
}

void batch_norm_update(Stream& stream, std::int64_t channels, const BatchNormStatistics& batch,
                       double momentum, Buffer running_mean, Buffer running_var) {
  check_statistics("batch_norm_update", batch);
  require_statistics("batch_norm_update",
                     {{"running_mean", running_mean}, {"running_var", running_var}});
  CONVOY_CHECK(batch.device_count || batch.count > 1,
               "batch_norm_update: one value per channel has no variance");
  host(stream).submit([=] {
    const double count = count_of(batch);
    if (count == 0) return;
    auto move = [&](Buffer running, std::int64_t c, double value) {
      write(running, c, (1 - momentum) * read(running, c) + momentum * value);
    };
    for (std::int64_t c = 0; c < channels; ++c) {
      move(running_mean, c, read(batch.mean, c));
      move(running_var, c, read(batch.m2, c) / (count - 1));
    }
  });
}

std::size_t batch_norm_mask_bytes(const BatchNormShape& shape, LayoutId layout, DType) {
  const MaskWords words(Runs(layout, shape.n, shape.c, shape.spatial));
  return words.bytes();
}

void batch_norm_apply(Stream& stream, const BatchNormShape& shape, ConstBuffer x,
                      const BatchNormStatistics& statistics, double epsilon, ConstBuffer gamma,
                      ConstBuffer beta, ConstBuffer residual, bool relu, Buffer y, Buffer mask) {
  require_values("batch_norm_apply", stream, {x, gamma, beta, residual, y});
  require_activation("batch_norm_apply", {{"x", x}, {"residual", residual}, {"y", y}});
  check_statistics("batch_norm_apply", statistics);
  require_type("batch_norm_apply", DType::u8, {{"mask", mask}});
  const Runs runs(x.layout, shape.n, shape.c, shape.spatial);
  const MaskWords words(runs);
  Staging staging(stream, x.layout, {{shape.x(), residual}, {shape.x(), y}}, 0, x.dtype);
  const ConstBuffer add = staging.input_buffer(shape.x(), residual);
  const Buffer out = staging.output_buffer(shape.x(), y);
  host(stream).submit([=, bits = mask.as<std::uint16_t>()] {
    LaneFactors factors(runs, 3);
    for (std::int64_t c = 0; c < runs.channels; ++c) {
      const SplitMean mean(read(statistics.mean, c));
      const double scale = read(gamma, c) * rstd_of(statistics, epsilon, c);
      factors.set(c, 0, mean.near);
      factors.set(c, 1, scale);
      factors.set(c, 2, read(beta, c) - mean.rest * scale);
    }
    with_values(x.dtype, [&]<class T>(T) {
      parallel_for(runs.count, runs.length, [&](std::int64_t i) {
        const std::int64_t begin = i * runs.length;
        loops_of<T>().batch_norm_apply(x.as<T>() + begin, at(add.as<T>(), begin), runs.length,
                                       factors.of_run(i, 0), factors.of_run(i, 1),
                                       factors.of_run(i, 2), relu, out.as<T>() + begin,
                                       words.of_run(bits, i));
      });
    });
  });
  staging.finish();
}

void batch_norm_backward_reduce(Stream& stream, const BatchNormShape& shape, ConstBuffer x,
                                ConstBuffer y, ConstBuffer mask, ConstBuffer dy,
                                const BatchNormStatistics& statistics, double epsilon, bool relu,
                                Buffer sum_dz, Buffer sum_dz_xhat) {
  if (!relu) mask = {};
  if (!relu || mask) y = {};
  require_values("batch_norm_backward_reduce", stream, {x, y, dy});
  require_type("batch_norm_backward_reduce", DType::u8, {{"mask", mask}});
  require_activation("batch_norm_backward_reduce", {{"x", x}, {"y", y}, {"dy", dy}});
  require_statistics("batch_norm_backward_reduce",
                     {{"sum_dz", sum_dz}, {"sum_dz_xhat", sum_dz_xhat}});
  check_statistics("batch_norm_backward_reduce", statistics);
  const Runs runs(x.layout, shape.n, shape.c, shape.spatial);
  const MaskWords words(runs);
  const std::int64_t sums = runs.count * runs.period;
  Staging staging(stream, x.layout, {{shape.x(), y}, {shape.x(), dy}},
                  static_cast<std::size_t>(2 * sums) * sizeof(double), x.dtype);
  const ConstBuffer result = staging.input_buffer(shape.x(), y);
  const ConstBuffer gradient = staging.input_buffer(shape.x(), dy);
  auto* parts = static_cast<double*>(staging.own());
  host(stream).submit([=, bits = mask.as<std::uint16_t>()] {
    std::vector<double> means(static_cast<std::size_t>(runs.blocks * runs.period));
    for (std::int64_t c = 0; c < runs.channels; ++c) means[c] = read(statistics.mean, c);
    std::fill_n(parts, 2 * sums, 0.0);
    with_values(x.dtype, [&]<class T>(T) {
      parallel_for(runs.count, runs.length, [&](std::int64_t i) {
        const std::int64_t begin = i * runs.length;
        const BatchNormPassedOf<T> passed = {gradient.as<T>() + begin, words.of_run(bits, i),
                                             at(result.as<T>(), begin)};
        loops_of<T>().batch_norm_reduce(x.as<T>() + begin, passed, runs.length, runs.period,
                                        means.data() + i % runs.blocks * runs.period,
                                        parts + i * runs.period, parts + sums + i * runs.period);
      });
    });
    parallel_for(runs.channels, shape.n * kMergeElements, [&](std::int64_t c) {
      double dz = 0, dz_x = 0;
      for (std::int64_t i = c / runs.period; i < runs.count; i += runs.blocks) {
        dz += parts[i * runs.period + c % runs.period];
        dz_x += parts[sums + i * runs.period + c % runs.period];
      }
      write(sum_dz, c, dz);
      write(sum_dz_xhat, c, dz_x * rstd_of(statistics, epsilon, c));
    });
  });
}

void batch_norm_backward_apply(Stream& stream, const BatchNormShape& shape, ConstBuffer x,
                               ConstBuffer y, ConstBuffer mask, ConstBuffer dy,
                               const BatchNormStatistics& statistics, double epsilon, bool relu,
                               ConstBuffer gamma, ConstBuffer sum_dz, ConstBuffer sum_dz_xhat,
                               Buffer dx, Buffer dresidual) {
  const bool frozen = !sum_dz;
  const LayoutId working = dy.layout;
  if (!relu) mask = {};
  if (!relu || mask) y = {};
  require_type("batch_norm_backward_apply", DType::u8, {{"mask", mask}});
  CONVOY_DCHECK(!mask || x.layout == working,
                "batch_norm_backward_apply: mask of layout {}, dy is in layout {}", x.layout,
                working);
  if (frozen) x = {};
  require_values("batch_norm_backward_apply", stream, {x, y, dy, gamma, dx, dresidual});
  require_activation("batch_norm_backward_apply",
                     {{"x", x}, {"y", y}, {"dy", dy}, {"dx", dx}, {"dresidual", dresidual}});
  check_statistics("batch_norm_backward_apply", statistics);
  const Runs runs(working, shape.n, shape.c, shape.spatial);
  const MaskWords words(runs);
  Staging staging(stream, working,
                  {{shape.x(), x}, {shape.x(), y}, {shape.x(), dx}, {shape.x(), dresidual}}, 0,
                  dy.dtype);
  const ConstBuffer data = staging.input_buffer(shape.x(), x);
  const ConstBuffer result = staging.input_buffer(shape.x(), y);
  const Buffer out = staging.output_buffer(shape.x(), dx);
  const Buffer residual = staging.output_buffer(shape.x(), dresidual);
  host(stream).submit([=, bits = mask.as<std::uint16_t>()] {
    LaneFactors factors(runs, 4);
    const double count = count_of(statistics);
    for (std::int64_t c = 0; c < runs.channels; ++c) {
      const double rstd = rstd_of(statistics, epsilon, c);
      const double scale = read(gamma, c) * rstd;
      factors.set(c, 1, scale);
      if (frozen) continue;
      const SplitMean mean(read(statistics.mean, c));
      const double slope = -scale * rstd * read(sum_dz_xhat, c) / count;
      factors.set(c, 0, mean.near);
      factors.set(c, 2, slope);
      factors.set(c, 3, -scale * read(sum_dz, c) / count - slope * mean.rest);
    }
    with_values(dy.dtype, [&]<class T>(T) {
      parallel_for(runs.count, runs.length, [&](std::int64_t i) {
        const std::int64_t begin = i * runs.length;
        loops_of<T>().batch_norm_gradient(
            at(data.as<T>(), begin),
            {dy.as<T>() + begin, words.of_run(bits, i), at(result.as<T>(), begin)}, runs.length,
            {factors.of_run(i, 0), factors.of_run(i, 1), factors.of_run(i, 2),
             factors.of_run(i, 3)},
            at(out.as<T>(), begin), at(residual.as<T>(), begin));
      });
    });
  });
  staging.finish();
}

}  // namespace convoy::cpu
