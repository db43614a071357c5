// Sums in double of a range of floats, 16 partial sums side by side, added in lane order.
#include "kernels/cpu/vector/lanes.h"

namespace convoy::cpu::CONVOY_ISA {
namespace {

double total(const double* lanes) {
  double result = 0;
  for (int l = 0; l < kRowLanes; ++l) result += lanes[l];
  return result;
}

}  // namespace

double sum(std::int64_t count, const float* x) {
  double lanes[kRowLanes] = {};
  std::int64_t i = 0;
  for (; i + kRowLanes <= count; i += kRowLanes) {
    for (int l = 0; l < kRowLanes; ++l) lanes[l] += static_cast<double>(x[i + l]);
  }
  for (int l = 0; i < count; ++i, ++l) lanes[l] += static_cast<double>(x[i]);
  return total(lanes);
}

double sum_of_squares(std::int64_t count, const float* x) {
  double lanes[kRowLanes] = {};
  std::int64_t i = 0;
  for (; i + kRowLanes <= count; i += kRowLanes) {
    for (int l = 0; l < kRowLanes; ++l) {
      const double v = static_cast<double>(x[i + l]);
      lanes[l] += v * v;
    }
  }
  for (int l = 0; i < count; ++i, ++l) lanes[l] += static_cast<double>(x[i]) * x[i];
  return total(lanes);
}

void sum_rows(std::int64_t rows, std::int64_t row_stride, std::int64_t width, double factor,
              const float* x, float* y) {
  for (std::int64_t begin = 0; begin < width; begin += kRowLanes) {
    const std::int64_t rest = width - begin;
    const int lanes = rest < kRowLanes ? static_cast<int>(rest) : kRowLanes;
    double sums[kRowLanes] = {};
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* p = x + r * row_stride + begin;
      for (int l = 0; l < lanes; ++l) sums[l] += static_cast<double>(p[l]);
    }
    for (int l = 0; l < lanes; ++l) y[begin + l] = static_cast<float>(sums[l] * factor);
  }
}

double mse(std::int64_t count, const float* x, const float* target, float factor, float* dx) {
  double lanes[kRowLanes] = {};
  for (std::int64_t i = 0; i < count; i += kRowLanes) {
    const std::int64_t rest = count - i;
    const int width = rest < kRowLanes ? static_cast<int>(rest) : kRowLanes;
    for (int l = 0; l < width; ++l) {
      const double d = static_cast<double>(x[i + l]) - static_cast<double>(target[i + l]);
      lanes[l] += d * d;
    }
  }
  if (dx) {
    for (std::int64_t i = 0; i < count; ++i) dx[i] = (x[i] - target[i]) * factor;
  }
  return total(lanes);
}

}  // namespace convoy::cpu::CONVOY_ISA
