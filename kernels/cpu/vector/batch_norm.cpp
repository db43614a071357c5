// Batch norm of a run. Each function reads its inputs once from memory; sums are taken in float
// over short stretches (the caller hands over at most a few thousand elements) and folded to
// channels in double.
#include "kernels/cpu/vector/lanes.h"

namespace convoy::cpu::CONVOY_ISA {
namespace {

// sums[l % period] += row[l], in lane order.
void fold(const Row& row, int period, double* sums) {
  float lanes[kRowLanes];
  store(lanes, row);
  for (int l = 0; l < kRowLanes; ++l) sums[l % period] += static_cast<double>(lanes[l]);
}

struct Sums {
  double first[kRowLanes] = {};
  double second[kRowLanes] = {};
};

Sums sum_run(const float* x, std::int64_t count, int period) {
  const std::int64_t rows = count / kRowLanes;
  Row s0 = splat(0), s1 = s0, s2 = s0, s3 = s0;
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const float* p = x + r * kRowLanes;
    s0 = s0 + load(p);
    s1 = s1 + load(p + kRowLanes);
    s2 = s2 + load(p + 2 * kRowLanes);
    s3 = s3 + load(p + 3 * kRowLanes);
  }
  for (; r < rows; ++r) s0 = s0 + load(x + r * kRowLanes);
  Sums sums;
  fold((s0 + s1) + (s2 + s3), period, sums.first);
  for (std::int64_t i = rows * kRowLanes; i < count; ++i) {
    sums.first[i % period] += static_cast<double>(x[i]);
  }
  return sums;
}

// Sums of x - mean and of its square. `mean` has 16 lanes. Meanwhile the next stretch of memory
// comes in: without that the core would wait for memory in the first pass, and memory for it here.
Sums deviations(const float* x, std::int64_t count, int period, const float* mean) {
  const std::int64_t rows = count / kRowLanes;
  const Row m = load(mean);
  Row s0 = splat(0), s1 = s0, q0 = s0, q1 = s0;
  std::int64_t r = 0;
  for (; r + 2 <= rows; r += 2) {
    const Row a = load(x + r * kRowLanes) - m;
    const Row b = load(x + (r + 1) * kRowLanes) - m;
    __builtin_prefetch(x + count + r * kRowLanes);
    __builtin_prefetch(x + count + (r + 1) * kRowLanes);
    s0 = s0 + a;
    s1 = s1 + b;
    q0 = q0 + a * a;
    q1 = q1 + b * b;
  }
  for (; r < rows; ++r) {
    const Row a = load(x + r * kRowLanes) - m;
    s0 = s0 + a;
    q0 = q0 + a * a;
  }
  Sums sums;
  fold(s0 + s1, period, sums.first);
  fold(q0 + q1, period, sums.second);
  for (std::int64_t i = rows * kRowLanes; i < count; ++i) {
    const double d = static_cast<double>(x[i] - mean[i % kRowLanes]);
    sums.first[i % period] += d;
    sums.second[i % period] += d * d;
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

template <bool kRelu>
Sums reduce(const float* x, const float* y, const float* dy, std::int64_t count, int period,
            const float* mean) {
  const Row m = load(mean);
  const std::int64_t rows = count / kRowLanes;
  Row s0 = splat(0), s1 = s0, q0 = s0, q1 = s0;
  std::int64_t r = 0;
  for (; r + 2 <= rows; r += 2) {
    const std::int64_t i = r * kRowLanes, j = i + kRowLanes;
    Row a = load(dy + i), b = load(dy + j);
    if (kRelu) {
      a = mask(load(y + i), a);
      b = mask(load(y + j), b);
    }
    s0 = s0 + a;
    s1 = s1 + b;
    q0 = q0 + a * (load(x + i) - m);
    q1 = q1 + b * (load(x + j) - m);
  }
  Sums sums;
  fold(s0 + s1, period, sums.first);
  fold(q0 + q1, period, sums.second);
  for (std::int64_t i = r * kRowLanes; i < count; ++i) {
    const double dz = kRelu && y[i] <= 0 ? 0 : static_cast<double>(dy[i]);
    sums.first[i % period] += dz;
    sums.second[i % period] += dz * static_cast<double>(x[i] - mean[i % kRowLanes]);
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
  const double n = static_cast<double>(count / period);
  const Sums sums = sum_run(x, count, period);
  float about[kRowLanes];
  for (int l = 0; l < kRowLanes; ++l) about[l] = static_cast<float>(sums.first[l % period] / n);
  // The second pass is about a rounded mean, and says by how much that was off.
  const Sums off = deviations(x, count, period, about);
  for (int c = 0; c < period; ++c) {
    mean[c] = static_cast<double>(about[c]) + off.first[c] / n;
    const double rest = off.second[c] - off.first[c] * off.first[c] / n;
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
                       int period, const float* mean, double* sum_dz, double* sum_dz_x) {
  const Sums sums = y ? reduce<true>(x, y, dy, count, period, mean)
                      : reduce<false>(x, y, dy, count, period, mean);
  for (int c = 0; c < period; ++c) {
    sum_dz[c] += sums.first[c];
    sum_dz_x[c] += sums.second[c];
  }
}

void batch_norm_gradient(const float* x, const float* y, const float* dy, std::int64_t count,
                         const BatchNormGradient& factors, float* dx, float* dresidual) {
  auto run = x ? (y ? &choose_gradient<true, true> : &choose_gradient<true, false>)
               : (y ? &choose_gradient<false, true> : &choose_gradient<false, false>);
  run(x, y, dy, count, factors, dx, dresidual);
}

}  // namespace convoy::cpu::CONVOY_ISA
