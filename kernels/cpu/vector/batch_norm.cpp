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

// y, and with kBits where its gradient passes the ReLU.
template <bool kResidual, bool kRelu, bool kBits>
void apply(const float* x, const float* residual, std::int64_t count, const float* mean,
           const float* scale, const float* shift, float* y, std::uint16_t* bits) {
  const Row m = load(mean), a = load(scale), b = load(shift);
  const std::int64_t rows = count / kRowLanes;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t i = r * kRowLanes;
    __builtin_prefetch(x + i + kAhead);
    if (kResidual) __builtin_prefetch(residual + i + kAhead);
    __builtin_prefetch(y + i + kAhead, 1);
    Row value = (load(x + i) - m) * a + b;
    if (kResidual) value = value + load(residual + i);
    if (kBits) bits[r] = passing(value);
    if (kRelu) value = rectify(value);
    store(y + i, value);
  }
  unsigned last = 0;
  for (std::int64_t i = rows * kRowLanes; i < count; ++i) {
    const int l = static_cast<int>(i % kRowLanes);
    float value = (x[i] - mean[l]) * scale[l] + shift[l];
    if (kResidual) value = value + residual[i];
    if (!(value <= 0)) last |= 1u << l;
    y[i] = kRelu && value < 0 ? 0 : value;
  }
  if (kBits && count % kRowLanes) bits[rows] = static_cast<std::uint16_t>(last);
}

// What tells where a gradient passes the ReLU.
enum class Relu { none, y, bits };

// dy where the ReLU lets it pass, 0 elsewhere: of row r, of half i of that row, of element i.
template <Relu kRelu>
struct Passed {
  const float* y;
  const std::uint16_t* bits;
  const float* dy;

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
    if (kRelu == Relu::y) return y[i] <= 0 ? 0 : dy[i];
    if (kRelu == Relu::bits) return bits[i / kRowLanes] >> (i % kRowLanes) & 1 ? dy[i] : 0;
    return dy[i];
  }
  CONVOY_INLINE void prefetch(std::int64_t i) const {
    __builtin_prefetch(dy + i + kAhead);
    if (kRelu == Relu::y) __builtin_prefetch(y + i + kAhead);
  }
};

// Sums of dz and of dz * (x - mean).
template <Relu kRelu>
void reduce(const float* x, const Passed<kRelu>& passed, std::int64_t count, int period,
            const double* mean, double* sum_dz, double* sum_dz_x) {
  const WideRow means = lanes_of(mean, period);
  const std::int64_t rows = count / kRowLanes;
  Sums sums;
  for (std::int64_t r = 0; r < rows; ++r) {
    __builtin_prefetch(x + r * kRowLanes + kAhead);
    passed.prefetch(r * kRowLanes);
    for (int i = 0; i < kWides; ++i) {
      const std::int64_t at = r * kRowLanes + i * kHalfLanes;
      const Wide dz = widen(passed.half(r, i));
      sums.add(i, dz, dz * (widen(load_half(x + at)) - means.v[i]));
    }
  }
  fold(sums.first, period, sum_dz);
  fold(sums.second, period, sum_dz_x);
  for (std::int64_t i = rows * kRowLanes; i < count; ++i) {
    const auto dz = static_cast<double>(passed.element(i));
    sum_dz[i % period] += dz;
    sum_dz_x[i % period] += dz * (static_cast<double>(x[i]) - mean[i % period]);
  }
}

template <bool kX, bool kResidual, Relu kRelu>
void gradient(const float* x, const Passed<kRelu>& passed, std::int64_t count,
              const BatchNormGradient& f, float* dx, float* dresidual) {
  const Row m = load(f.mean), k_dz = load(f.k_dz), k_x = load(f.k_x), k = load(f.k);
  const std::int64_t rows = count / kRowLanes;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t i = r * kRowLanes;
    passed.prefetch(i);
    if (kX) __builtin_prefetch(x + i + kAhead);
    __builtin_prefetch(dx + i + kAhead, 1);
    const Row dz = passed.row(r);
    if (kResidual) store(dresidual + i, dz);
    Row value = k_dz * dz;
    if (kX) value = value + ((load(x + i) - m) * k_x + k);
    store(dx + i, value);
  }
  for (std::int64_t i = rows * kRowLanes; i < count; ++i) {
    const int l = static_cast<int>(i % kRowLanes);
    const float dz = passed.element(i);
    if (kResidual) dresidual[i] = dz;
    float value = f.k_dz[l] * dz;
    if (kX) value = value + ((x[i] - f.mean[l]) * f.k_x[l] + f.k[l]);
    dx[i] = value;
  }
}

template <Relu kRelu>
void choose_gradient(const float* x, const Passed<kRelu>& passed, std::int64_t count,
                     const BatchNormGradient& factors, float* dx, float* dresidual) {
  auto run = x ? (dresidual ? &gradient<true, true, kRelu> : &gradient<true, false, kRelu>)
               : (dresidual ? &gradient<false, true, kRelu> : &gradient<false, false, kRelu>);
  run(x, passed, count, factors, dx, dresidual);
}

template <bool kResidual>
void choose_apply(const float* x, const float* residual, std::int64_t count, const float* mean,
                  const float* scale, const float* shift, bool relu, float* y,
                  std::uint16_t* bits) {
  auto run = !relu ? &apply<kResidual, false, false>
                   : (bits ? &apply<kResidual, true, true> : &apply<kResidual, true, false>);
  run(x, residual, count, mean, scale, shift, y, bits);
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
                      const float* scale, const float* shift, bool relu, float* y,
                      std::uint16_t* bits) {
  auto run = residual ? &choose_apply<true> : &choose_apply<false>;
  run(x, residual, count, mean, scale, shift, relu, y, bits);
}

void batch_norm_reduce(const float* x, const BatchNormPassed& p, std::int64_t count, int period,
                       const double* mean, double* sum_dz, double* sum_dz_x) {
  if (p.bits) {
    reduce(x, Passed<Relu::bits>{p.y, p.bits, p.dy}, count, period, mean, sum_dz, sum_dz_x);
  } else if (p.y) {
    reduce(x, Passed<Relu::y>{p.y, p.bits, p.dy}, count, period, mean, sum_dz, sum_dz_x);
  } else {
    reduce(x, Passed<Relu::none>{p.y, p.bits, p.dy}, count, period, mean, sum_dz, sum_dz_x);
  }
}

void batch_norm_gradient(const float* x, const BatchNormPassed& p, std::int64_t count,
                         const BatchNormGradient& factors, float* dx, float* dresidual) {
  if (p.bits) {
    choose_gradient(x, Passed<Relu::bits>{p.y, p.bits, p.dy}, count, factors, dx, dresidual);
  } else if (p.y) {
    choose_gradient(x, Passed<Relu::y>{p.y, p.bits, p.dy}, count, factors, dx, dresidual);
  } else {
    choose_gradient(x, Passed<Relu::none>{p.y, p.bits, p.dy}, count, factors, dx, dresidual);
  }
}

}  // namespace convoy::cpu::CONVOY_ISA
