// Batch norm: statistics and apply; backward stands in a file of its own. Each reads the
// activations once from memory, run by run (see layout.h), and all layouts take the same way:
// factors are laid out as 16 lanes per channel block. Sums are made per run and added over images
// in order.
#include "kernels/cpu/batch_norm_parts.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/staging.h"

namespace convoy::cpu {
namespace {

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

// Factors of y = (x - mean) * scale + shift, in this order.
LaneFactors value_factors(const Runs& runs, const BatchNormStatistics& statistics, double epsilon,
                          ConstBuffer gamma, ConstBuffer beta) {
  LaneFactors factors(runs, 3);
  for (std::int64_t c = 0; c < runs.channels; ++c) {
    const SplitMean mean(read(statistics.mean, c));
    const double scale = read(gamma, c) * rstd_of(statistics, epsilon, c);
    factors.set(c, 0, mean.near);
    factors.set(c, 1, scale);
    factors.set(c, 2, read(beta, c) - mean.rest * scale);
  }
  return factors;
}

}  // namespace

void batch_norm_statistics(Stream& stream, const BatchNormShape& shape, ConstBuffer x, Buffer mean,
                           Buffer m2) {
  check_values("batch_norm_statistics", stream, {{"x", x}});
  require_statistics("batch_norm_statistics", {{"mean", mean}, {"m2", m2}});
  const Runs runs(x.layout, shape.n, shape.c, shape.spatial);
  auto* parts = static_cast<Moments*>(
      stream.scratch(static_cast<std::size_t>(runs.count * runs.period) * sizeof(Moments)));
  host(stream).submit([=] {
    each_run(runs, x.dtype, [&]<class T>(T, std::int64_t i, std::int64_t begin) {
      run_statistics(x.as<T>() + begin, runs.length, runs.period, parts + i * runs.period);
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
  const char* kernel = "batch_norm_apply";
  check_values(kernel, stream, {{"x", x}, {"residual", residual}, {"y", y}});
  require_values(kernel, stream, {gamma, beta});
  check_statistics(kernel, statistics);
  require_type(kernel, DType::u8, {{"mask", mask}});
  const Runs runs(x.layout, shape.n, shape.c, shape.spatial);
  const MaskWords words(runs);
  Staging staging(stream, x.layout, {{shape.x(), residual}, {shape.x(), y}}, 0, x.dtype);
  const ConstBuffer add = staging.input_buffer(shape.x(), residual);
  const Buffer out = staging.output_buffer(shape.x(), y);
  host(stream).submit([=, bits = mask.as<std::uint16_t>()] {
    const LaneFactors factors = value_factors(runs, statistics, epsilon, gamma, beta);
    each_run(runs, x.dtype, [&]<class T>(T, std::int64_t i, std::int64_t begin) {
      loops_of<T>().batch_norm_apply(x.as<T>() + begin, at(add.as<T>(), begin), runs.length,
                                     factors.of_run(i, 0), factors.of_run(i, 1),
                                     factors.of_run(i, 2), relu, out.as<T>() + begin,
                                     words.of_run(bits, i));
    });
  });
  staging.finish();
}

}  // namespace convoy::cpu
