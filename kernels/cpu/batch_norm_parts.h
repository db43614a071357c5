// What the kernels of batch norm share: loops over runs, factors laid out as 16 lanes per channel
// block, words of a ReLU's bits, statistics in double, and what is asked of operands.
#pragma once

#include <cmath>
#include <initializer_list>
#include <vector>

#include "kernels/base/bf16.h"
#include "kernels/base/error.h"
#include "kernels/cpu/checks.h"
#include "kernels/cpu/layout.h"
#include "kernels/cpu/values.h"
#include "kernels/shapes.h"

namespace convoy::cpu {

/// What adding one run's sums costs, in elements of a plain loop.
inline constexpr std::int64_t kMergeElements = 16;

/// The value in double, of f32, f64 or bf16.
inline double read(ConstBuffer buffer, std::int64_t i) {
  if (buffer.dtype == DType::bf16) return static_cast<float>(buffer.as<Bf16>()[i]);
  return buffer.dtype == DType::f64 ? buffer.as<double>()[i]
                                    : static_cast<double>(buffer.as<float>()[i]);
}

/// Rounded to what `buffer` is, f32 or f64.
inline void write(Buffer buffer, std::int64_t i, double value) {
  if (buffer.dtype == DType::f64) {
    buffer.as<double>()[i] = value;
  } else {
    buffer.as<float>()[i] = static_cast<float>(value);
  }
}

/// Null stays null: an operand left out.
template <class T>
T* at(T* data, std::int64_t begin) {
  return data ? data + begin : nullptr;
}

/// Calls work(T(), i, where it begins) for each run i of values of `dtype`, whose loops are of T.
template <class Work>
void each_run(const Runs& runs, DType dtype, const Work& work) {
  with_values(dtype, [&](auto type) {
    parallel_for(runs.count, runs.length, [&](std::int64_t i) { work(type, i, i * runs.length); });
  });
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

/// Values of each channel that the statistics are of.
inline double count_of(const BatchNormStatistics& statistics) {
  return statistics.device_count ? *statistics.device_count.as<double>() : statistics.count;
}

/// 1 / sqrt(variance + epsilon) of channel c.
inline double rstd_of(const BatchNormStatistics& statistics, double epsilon, std::int64_t c) {
  return 1 / std::sqrt(read(statistics.m2, c) / count_of(statistics) + epsilon);
}

/// The float nearest to a mean, and what that leaves out.
struct SplitMean {
  explicit SplitMean(double mean)
      : near(static_cast<double>(static_cast<float>(mean))), rest(mean - near) {}
  double near, rest;
};

/// `internal` unless all is there that `statistics` are made of.
inline void check_statistics(const char* kernel, const BatchNormStatistics& statistics) {
  require_statistics(kernel, {{"mean", statistics.mean}, {"m2", statistics.m2}});
  require_type(kernel, DType::f64, {{"device_count", statistics.device_count}});
  CONVOY_DCHECK(statistics.device_count || statistics.count > 0, "{}: statistics of {} values",
                kernel, statistics.count);
}

/// `usage` or `internal` unless all activations given are of types and layouts that this backend
/// has.
inline void check_values(const char* kernel, const Stream& stream,
                         std::initializer_list<Operand> values) {
  for (const Operand& operand : values) require_values(kernel, stream, {operand.buffer});
  require_activation(kernel, values);
}

}  // namespace convoy::cpu
