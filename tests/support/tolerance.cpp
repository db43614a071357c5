#include "tests/support/tolerance.h"

#include <fmt/format.h>

#include <cmath>

namespace convoy::testing {
namespace {

struct Row {
  OpClass op_class;
  Tolerance f32, f64;
};

// f64 rows bound how far two orders of summation may be apart.
constexpr Row kTable[] = {
    {OpClass::exact, {0, 0}, {0, 0}},
    {OpClass::elementwise, {1e-7, 1e-6}, {1e-15, 1e-14}},
    {OpClass::function, {1e-6, 3e-6}, {1e-14, 1e-13}},
    {OpClass::product, {1e-6, 1e-5}, {1e-14, 1e-13}},
    {OpClass::sum, {1e-6, 1e-5}, {1e-14, 1e-13}},
    {OpClass::double_sum, {1e-14, 1e-12}, {1e-14, 1e-12}},
    {OpClass::statistics, {1e-14, 1e-12}, {1e-14, 1e-12}},
    {OpClass::normalisation, {1e-6, 1e-5}, {1e-13, 1e-12}},
    {OpClass::optimizer, {1e-7, 1e-6}, {1e-15, 1e-14}},
};

std::string place_of(std::size_t index, const Shape& shape) {
  std::string place;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    place = fmt::format("{}{}{}", index % shape[i], place.empty() ? "" : ", ", place);
    index /= shape[i];
  }
  return "[" + place + "]";
}

// Error as a multiple of the tolerance. NaN for NaN, and equal infinities, are no error.
double excess(double actual, double expected, Tolerance tolerance) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return 0;
  const double ratio =
      std::abs(actual - expected) / (tolerance.atol + tolerance.rtol * std::abs(expected));
  return std::isnan(ratio) ? INFINITY : ratio;
}

}  // namespace

Tolerance tolerance(OpClass op_class, DType dtype, double terms) {
  for (const Row& row : kTable) {
    if (row.op_class != op_class) continue;
    Tolerance base = dtype == DType::f64 ? row.f64 : row.f32;
    if (dtype == DType::bf16 && op_class != OpClass::exact) base.rtol += 1.0 / 256;
    return {base.atol * std::sqrt(std::max(terms, 1.0)), base.rtol};
  }
  return {};
}

std::string difference(const std::vector<double>& actual, const std::vector<double>& expected,
                       const Shape& shape, Tolerance tolerance) {
  if (actual.size() != expected.size()) {
    return fmt::format("{} values, expected {}", actual.size(), expected.size());
  }
  std::size_t worst = 0, out = 0;
  double worst_excess = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double here = excess(actual[i], expected[i], tolerance);
    if (here > 1) ++out;
    if (here > worst_excess) {
      worst_excess = here;
      worst = i;
    }
  }
  if (out == 0) return {};
  return fmt::format(
      "{} of {} are out; worst at {}: {:.9g}, expected {:.9g}, error {:.3g} is {:.3g} x the "
      "tolerance",
      out, actual.size(), place_of(worst, shape), actual[worst], expected[worst],
      std::abs(actual[worst] - expected[worst]), worst_excess);
}

}  // namespace convoy::testing
