// Batch norm of a run of floats or bfloat16, for the files that say which. Each function reads its
// inputs once from memory; sums are taken in double, in 16 lanes that are folded to channels at the
// end. What is read as bfloat16 is summed in float first, over a few rows.
#pragma once

#include "kernels/cpu/vector/lanes.h"

namespace convoy::cpu::CONVOY_ISA {
namespace {

// Elements by which memory is asked for ahead: the hardware alone reaches about four fifths of this
// speed, for it stops at every page.
template <class T>
constexpr std::int64_t kAhead = 4096 / sizeof(T);

/// Two sums of each lane.
struct Sums {
  WideRow first = {}, second = {};

  CONVOY_INLINE void add(int i, const Wide& a, const Wide& b) {
    first.v[i] += a;
    second.v[i] += b;
  }
  void add(const Row& a, const Row& b) {
    const WideRow wide_a = widen(a), wide_b = widen(b);
    for (int i = 0; i < kWides; ++i) add(i, wide_a.v[i], wide_b.v[i]);
  }
};

// Rows of bfloat16 whose sums are taken in float.
constexpr std::int64_t kFloatRows = 16;

// Sums over rows of what `each(row, first, second)` adds to two rows of floats.
template <class Each>
CONVOY_INLINE Sums sums_in_floats(std::int64_t rows, const Each& each) {
  Sums sums;
  for (std::int64_t begin = 0; begin < rows; begin += kFloatRows) {
    const std::int64_t end = begin + kFloatRows < rows ? begin + kFloatRows : rows;
    Row first = {}, second = {};
    for (std::int64_t r = begin; r < end; ++r) each(r, first, second);
    sums.add(first, second);
  }
  return sums;
}

// sums[l % period] += row[l], in lane order.
void fold(const WideRow& row, int period, double* sums) {
  double lanes[kRowLanes];
  __builtin_memcpy(lanes, row.v, sizeof lanes);
  for (int l = 0; l < kRowLanes; ++l) sums[l % period] += lanes[l];
}

// 16 lanes of what has `period` values.
WideRow lanes_of(const double* values, int period) {
  double lanes[kRowLanes];
  for (int l = 0; l < kRowLanes; ++l) lanes[l] = values[l % period];
  WideRow row;
  __builtin_memcpy(row.v, lanes, sizeof lanes);
  return row;
}

#if defined(__AVX512BF16__)
// 16 lanes of floats near what has `period` values.
Row near_lanes_of(const double* values, int period) {
  float lanes[kRowLanes];
  for (int l = 0; l < kRowLanes; ++l) lanes[l] = static_cast<float>(values[l % period]);
  return load(lanes);
}

Sums deviations(const std::uint16_t* x, std::int64_t rows, const double* shift, int period) {
  const Row about = near_lanes_of(shift, period);  // which are bfloat16
  return sums_in_floats(rows, [&](std::int64_t r, Row& first, Row& second) {
    __builtin_prefetch(x + r * kRowLanes + kAhead<std::uint16_t>);
    const Row d = load(x + r * kRowLanes) - about;
    first = first + d;
    second = second + d * d;
  });
}
#endif

// Sums of x - shift and of its square.
[[maybe_unused]] Sums deviations(const float* x, std::int64_t rows, const double* values,
                                 int period) {
  const WideRow shift = lanes_of(values, period);
  Sums sums;
  for (std::int64_t r = 0; r < rows; ++r, x += kRowLanes) {
    __builtin_prefetch(x + kAhead<float>);
    const WideRow row = widen(x);
    for (int i = 0; i < kWides; ++i) {
      const Wide d = row.v[i] - shift.v[i];
      sums.add(i, d, d * d);
    }
  }
  return sums;
}

// y, and with kBits where its gradient passes the ReLU.
template <bool kResidual, bool kRelu, bool kBits, class T>
void apply(const T* x, const T* residual, std::int64_t count, const float* mean, const float* scale,
           const float* shift, T* y, std::uint16_t* bits) {
  const Row m = load(mean), a = load(scale), b = load(shift);
  const std::int64_t rows = count / kRowLanes;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t i = r * kRowLanes;
    __builtin_prefetch(x + i + kAhead<T>);
    if (kResidual) __builtin_prefetch(residual + i + kAhead<T>);
    __builtin_prefetch(y + i + kAhead<T>, 1);
    Row value = (load(x + i) - m) * a + b;
    if (kResidual) value = value + load(residual + i);
    if (kBits) bits[r] = passing(value);
    if (kRelu) value = rectify(value);
    store(y + i, value);
  }
  unsigned last = 0;
  for (std::int64_t i = rows * kRowLanes; i < count; ++i) {
    const int l = static_cast<int>(i % kRowLanes);
    float value = (to_float(x[i]) - mean[l]) * scale[l] + shift[l];
    if (kResidual) value = value + to_float(residual[i]);
    if (!(value <= 0)) last |= 1u << l;
    store(y + i, kRelu && value < 0 ? 0.0f : value);
  }
  if (kBits && count % kRowLanes) bits[rows] = static_cast<std::uint16_t>(last);
}

// What tells where a gradient passes the ReLU.
enum class Relu { none, y, bits };

// dy where the ReLU lets it pass, 0 elsewhere: of row r, of half i of that row, of element i.
template <Relu kRelu, class T>
struct Passed {
  const T* y;
  const std::uint16_t* bits;
  const T* dy;

  CONVOY_INLINE Row row(std::int64_t r) const {
    const Row dz = load(dy + r * kRowLanes);
    if (kRelu == Relu::y) return mask(load(y + r * kRowLanes), dz);
    return kRelu == Relu::bits ? keep(bits[r], dz) : dz;
  }
  CONVOY_INLINE Half half(std::int64_t r, int i) const {
    const std::int64_t at = r * kRowLanes + i * kHalfLanes;
    const Half dz = load_half(dy + at);
    if (kRelu == Relu::y) return load_half(y + at) <= Half{} ? Half{} : dz;
    return kRelu == Relu::bits ? keep(unsigned{bits[r]} >> (i * kHalfLanes), dz) : dz;
  }
  float element(std::int64_t i) const {
    const float dz = to_float(dy[i]);
    if (kRelu == Relu::y) return to_float(y[i]) <= 0 ? 0 : dz;
    if (kRelu == Relu::bits) return bits[i / kRowLanes] >> (i % kRowLanes) & 1 ? dz : 0;
    return dz;
  }
  CONVOY_INLINE void prefetch(std::int64_t i) const {
    __builtin_prefetch(dy + i + kAhead<T>);
    if (kRelu == Relu::y) __builtin_prefetch(y + i + kAhead<T>);
  }
};

#if defined(__AVX512BF16__)
template <Relu kRelu>
Sums reduce_rows(const std::uint16_t* x, const Passed<kRelu, std::uint16_t>& passed,
                 std::int64_t rows, int period, const double* mean) {
  const Row near = near_lanes_of(mean, period);
  Sums sums = sums_in_floats(rows, [&](std::int64_t r, Row& first, Row& second) {
    __builtin_prefetch(x + r * kRowLanes + kAhead<std::uint16_t>);
    passed.prefetch(r * kRowLanes);
    const Row dz = passed.row(r);
    first = first + dz;
    second = second + dz * (load(x + r * kRowLanes) - near);
  });
  // What the floats left out of the means.
  const WideRow means = lanes_of(mean, period), floats = widen(near);
  for (int i = 0; i < kWides; ++i) sums.second.v[i] -= sums.first.v[i] * (means.v[i] - floats.v[i]);
  return sums;
}
#endif

template <Relu kRelu>
Sums reduce_rows(const float* x, const Passed<kRelu, float>& passed, std::int64_t rows, int period,
                 const double* mean) {
  const WideRow means = lanes_of(mean, period);
  Sums sums;
  for (std::int64_t r = 0; r < rows; ++r) {
    __builtin_prefetch(x + r * kRowLanes + kAhead<float>);
    passed.prefetch(r * kRowLanes);
    for (int i = 0; i < kWides; ++i) {
      const std::int64_t at = r * kRowLanes + i * kHalfLanes;
      const Wide dz = widen(passed.half(r, i));
      sums.add(i, dz, dz * (widen(load_half(x + at)) - means.v[i]));
    }
  }
  return sums;
}

// Sums of dz and of dz * (x - mean).
template <Relu kRelu, class T>
void reduce(const T* x, const Passed<kRelu, T>& passed, std::int64_t count, int period,
            const double* mean, double* sum_dz, double* sum_dz_x) {
  const std::int64_t rows = count / kRowLanes;
  const Sums sums = reduce_rows(x, passed, rows, period, mean);
  fold(sums.first, period, sum_dz);
  fold(sums.second, period, sum_dz_x);
  for (std::int64_t i = rows * kRowLanes; i < count; ++i) {
    const auto dz = static_cast<double>(passed.element(i));
    sum_dz[i % period] += dz;
    sum_dz_x[i % period] += dz * (static_cast<double>(to_float(x[i])) - mean[i % period]);
  }
}

template <bool kX, bool kResidual, Relu kRelu, class T>
void gradient(const T* x, const Passed<kRelu, T>& passed, std::int64_t count,
              const BatchNormGradient& f, T* dx, T* dresidual) {
  const Row m = load(f.mean), k_dz = load(f.k_dz), k_x = load(f.k_x), k = load(f.k);
  const std::int64_t rows = count / kRowLanes;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t i = r * kRowLanes;
    passed.prefetch(i);
    if (kX) __builtin_prefetch(x + i + kAhead<T>);
    __builtin_prefetch(dx + i + kAhead<T>, 1);
    const Row dz = passed.row(r);
    if (kResidual) store(dresidual + i, dz);
    Row value = k_dz * dz;
    if (kX) value = value + ((load(x + i) - m) * k_x + k);
    store(dx + i, value);
  }
  for (std::int64_t i = rows * kRowLanes; i < count; ++i) {
    const int l = static_cast<int>(i % kRowLanes);
    const float dz = passed.element(i);
    if (kResidual) store(dresidual + i, dz);
    float value = f.k_dz[l] * dz;
    if (kX) value = value + ((to_float(x[i]) - f.mean[l]) * f.k_x[l] + f.k[l]);
    store(dx + i, value);
  }
}

template <Relu kRelu, class T>
void choose_gradient(const T* x, const Passed<kRelu, T>& passed, std::int64_t count,
                     const BatchNormGradient& factors, T* dx, T* dresidual) {
  auto run = x ? (dresidual ? &gradient<true, true, kRelu, T> : &gradient<true, false, kRelu, T>)
               : (dresidual ? &gradient<false, true, kRelu, T> : &gradient<false, false, kRelu, T>);
  run(x, passed, count, factors, dx, dresidual);
}

template <bool kResidual, class T>
void choose_apply(const T* x, const T* residual, std::int64_t count, const float* mean,
                  const float* scale, const float* shift, bool relu, T* y, std::uint16_t* bits) {
  auto run = !relu ? &apply<kResidual, false, false, T>
                   : (bits ? &apply<kResidual, true, true, T> : &apply<kResidual, true, false, T>);
  run(x, residual, count, mean, scale, shift, y, bits);
}

template <class T>
void statistics_of(const T* x, std::int64_t count, int period, double* mean, double* m2) {
  // Sums are about a first value of each channel: what is left to cancel is of the size of the
  // deviation, whatever the mean.
  double shift[kRowLanes] = {}, first[kRowLanes] = {}, second[kRowLanes] = {};
  for (int c = 0; c < period; ++c) shift[c] = static_cast<double>(to_float(x[c]));
  const std::int64_t rows = count / kRowLanes;
  const Sums sums = deviations(x, rows, shift, period);
  fold(sums.first, period, first);
  fold(sums.second, period, second);
  for (std::int64_t i = rows * kRowLanes; i < count; ++i) {
    const double d = static_cast<double>(to_float(x[i])) - shift[i % period];
    first[i % period] += d;
    second[i % period] += d * d;
  }
  const std::int64_t positions = count / period;
  const auto n = static_cast<double>(positions);
  for (int c = 0; c < period; ++c) {
    mean[c] = shift[c] + first[c] / n;
    const double rest = second[c] - first[c] * first[c] / n;
    m2[c] = rest < 0 ? 0 : rest;
  }
}

// Calls work(p as what tells where a gradient passes).
template <class T, class Work>
void with_passed(const BatchNormPassedOf<T>& p, const Work& work) {
  if (p.bits) {
    work(Passed<Relu::bits, T>{p.y, p.bits, p.dy});
  } else if (p.y) {
    work(Passed<Relu::y, T>{p.y, p.bits, p.dy});
  } else {
    work(Passed<Relu::none, T>{p.y, p.bits, p.dy});
  }
}

}  // namespace
}  // namespace convoy::cpu::CONVOY_ISA

/// The four loops over T in memory.
#define CONVOY_BATCH_NORM_LOOPS(T)                                                                 \
  void batch_norm_statistics(const T* x, std::int64_t count, int period, double* mean,             \
                             double* m2) {                                                         \
    statistics_of(x, count, period, mean, m2);                                                     \
  }                                                                                                \
  void batch_norm_apply(const T* x, const T* residual, std::int64_t count, const float* mean,      \
                        const float* scale, const float* shift, bool relu, T* y,                   \
                        std::uint16_t* bits) {                                                     \
    auto run = residual ? &choose_apply<true, T> : &choose_apply<false, T>;                        \
    run(x, residual, count, mean, scale, shift, relu, y, bits);                                    \
  }                                                                                                \
  void batch_norm_reduce(const T* x, const BatchNormPassedOf<T>& p, std::int64_t count,            \
                         int period, const double* mean, double* sum_dz, double* sum_dz_x) {       \
    with_passed(                                                                                   \
        p, [&](const auto& passed) { reduce(x, passed, count, period, mean, sum_dz, sum_dz_x); }); \
  }                                                                                                \
  void batch_norm_gradient(const T* x, const BatchNormPassedOf<T>& p, std::int64_t count,          \
                           const BatchNormGradient& factors, T* dx, T* dresidual) {                \
    with_passed(p, [&](const auto& passed) {                                                       \
      choose_gradient(x, passed, count, factors, dx, dresidual);                                   \
    });                                                                                            \
  }
