// Batch norm of a run. Each function reads its inputs once from memory; sums are taken in double,
// in 16 lanes that are folded to channels at the end.
#include "kernels/cpu/vector/lanes.h"

namespace convoy::cpu::CONVOY_ISA {
namespace {

// Floats by which memory is asked for ahead: the hardware alone reaches about four fifths of this
// speed, for it stops at every page.
constexpr std::int64_t kAhead = 1024;

/// Two sums of each lane.
struct Sums {
  WideRow first = {}, second = {};

  CONVOY_INLINE void add(int i, const Wide& a, const Wide& b) {
    first.v[i] += a;
    second.v[i] += b;
  }
};

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

// Sums of x - shift and of its square.
Sums deviations(const float* x, std::int64_t rows, const WideRow& shift) {
  Sums sums;
  for (std::int64_t r = 0; r < rows; ++r, x += kRowLanes) {
    __builtin_prefetch(x + kAhead);
    const WideRow row = widen(x);
    for (int i = 0; i < kWides; ++i) {
      const Wide d = row.v[i] - shift.v[i];
      sums.add(i, d, d * d);
    }
  }
  return sums;
}

template <bool kResidual, bool kRelu>
void apply(const float* x, const float* residual, std::int64_t count, const float* mean,
           const float* scale, const float* shift, float* y) {
  const Row m = load(mean), a = load(scale), b = load(shift);
  const std::int64_t rows = count / kRowLanes;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t i = r * kRowLanes;
    __builtin_prefetch(x + i + kAhead);
    if (kResidual) __builtin_prefetch(residual + i + kAhead);
    __builtin_prefetch(y + i + kAhead, 1);
    Row value = (load(x + i) - m) * a + b;
    if (kResidual) value = value + load(residual + i);
    if (kRelu) value = rectify(value);
    store(y + i, value);
  }
  for (std::int64_t i = rows * kRowLanes; i < count; ++i) {
    const int l = static_cast<int>(i % kRowLanes);
    float value = (x[i] - mean[l]) * scale[l] + shift[l];
    if (kResidual) value = value + residual[i];
    y[i] = kRelu && value < 0 ? 0 : value;
  }
}

// Sums of dz and of dz * (x - mean).
template <bool kRelu>
Sums reduce(const float* x, const float* y, const float* dy, std::int64_t rows,
            const WideRow& mean) {
  Sums sums;
  for (std::int64_t r = 0; r < rows; ++r) {
    __builtin_prefetch(x + r * kRowLanes + kAhead);
    __builtin_prefetch(dy + r * kRowLanes + kAhead);
    if (kRelu) __builtin_prefetch(y + r * kRowLanes + kAhead);
    for (int i = 0; i < kWides; ++i) {
      const std::int64_t at = r * kRowLanes + i * kHalfLanes;
      Half gradient = load_half(dy + at);
      if (kRelu) gradient = load_half(y + at) <= Half{} ? Half{} : gradient;
      const Wide dz = widen(gradient);
      sums.add(i, dz, dz * (widen(load_half(x + at)) - mean.v[i]));
    }
  }
  return sums;
}

template <bool kX, bool kRelu, bool kResidual>
void gradient(const float* x, const float* y, const float* dy, std::int64_t count,
              const BatchNormGradient& f, float* dx, float* dresidual) {
  const Row m = load(f.mean), k_dz = load(f.k_dz), k_x = load(f.k_x), k = load(f.k);
  const std::int64_t rows = count / kRowLanes;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t i = r * kRowLanes;
    __builtin_prefetch(dy + i + kAhead);
    if (kX) __builtin_prefetch(x + i + kAhead);
    if (kRelu) __builtin_prefetch(y + i + kAhead);
    __builtin_prefetch(dx + i + kAhead, 1);
    Row dz = load(dy + i);
    if (kRelu) dz = mask(load(y + i), dz);
    if (kResidual) store(dresidual + i, dz);
    Row value = k_dz * dz;
    if (kX) value = value + ((load(x + i) - m) * k_x + k);
    store(dx + i, value);
  }
  for (std::int64_t i = rows * kRowLanes; i < count; ++i) {
    const int l = static_cast<int>(i % kRowLanes);
    const float dz = kRelu && y[i] <= 0 ? 0 : dy[i];
    if (kResidual) dresidual[i] = dz;
    float value = f.k_dz[l] * dz;
    if (kX) value = value + ((x[i] - f.mean[l]) * f.k_x[l] + f.k[l]);
    dx[i] = value;
  }
}

template <bool kX, bool kRelu>
void choose_gradient(const float* x, const float* y, const float* dy, std::int64_t count,
                     const BatchNormGradient& factors, float* dx, float* dresidual) {
  auto run = dresidual ? &gradient<kX, kRelu, true> : &gradient<kX, kRelu, false>;
  run(x, y, dy, count, factors, dx, dresidual);
}

}  // namespace

void batch_norm_statistics(const float* x, std::int64_t count, int period, double* mean,
                           double* m2) {
  // Sums are about a first value of each channel: what is left to cancel is of the size of the
  // deviation, whatever the mean.
  double shift[kRowLanes] = {}, first[kRowLanes] = {}, second[kRowLanes] = {};
  for (int c = 0; c < period; ++c) shift[c] = static_cast<double>(x[c]);
  const std::int64_t rows = count / kRowLanes;
  const Sums sums = deviations(x, rows, lanes_of(shift, period));
  fold(sums.first, period, first);
  fold(sums.second, period, second);
  for (std::int64_t i = rows * kRowLanes; i < count; ++i) {
    const double d = static_cast<double>(x[i]) - shift[i % period];
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

void batch_norm_apply(const float* x, const float* residual, std::int64_t count, const float* mean,
                      const float* scale, const float* shift, bool relu, float* y) {
  auto run = residual ? (relu ? &apply<true, true> : &apply<true, false>)
                      : (relu ? &apply<false, true> : &apply<false, false>);
  run(x, residual, count, mean, scale, shift, y);
}

void batch_norm_reduce(const float* x, const float* y, const float* dy, std::int64_t count,
                       int period, const double* mean, double* sum_dz, double* sum_dz_x) {
  const std::int64_t rows = count / kRowLanes;
  const WideRow means = lanes_of(mean, period);
  const Sums sums = y ? reduce<true>(x, y, dy, rows, means) : reduce<false>(x, y, dy, rows, means);
  fold(sums.first, period, sum_dz);
  fold(sums.second, period, sum_dz_x);
  for (std::int64_t i = rows * kRowLanes; i < count; ++i) {
    const double dz = y && y[i] <= 0 ? 0 : static_cast<double>(dy[i]);
    sum_dz[i % period] += dz;
    sum_dz_x[i % period] += dz * (static_cast<double>(x[i]) - mean[i % period]);
  }
}

void batch_norm_gradient(const float* x, const float* y, const float* dy, std::int64_t count,
                         const BatchNormGradient& factors, float* dx, float* dresidual) {
  auto run = x ? (y ? &choose_gradient<true, true> : &choose_gradient<true, false>)
               : (y ? &choose_gradient<false, true> : &choose_gradient<false, false>);
  run(x, y, dy, count, factors, dx, dresidual);
}

}  // namespace convoy::cpu::CONVOY_ISA
