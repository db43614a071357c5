#include "tests/engine/gradient_case.h"

#include <algorithm>
#include <cmath>

#include "engine/autograd/backward.h"
#include "engine/autograd/grad_mode.h"
#include "tests/support/catch.h"
#include "tests/support/formula.h"

namespace convoy::testing {
namespace {

constexpr double kStep = 1e-6;
constexpr double kTolerance = 1e-7;

std::vector<Tensor> make_leaves(const GradientCase& given) {
  std::vector<Tensor> leaves;
  for (std::size_t i = 0; i < given.leaves.size(); ++i) {
    leaves.push_back(Tensor::from(leaf_values(given, i), given.leaves[i].second, kOracle));
  }
  return leaves;
}

std::vector<double> output_gradient(const GradientCase& given, std::int64_t count) {
  return signed_values(given.name + "/dy", count);
}

// sum(y * dy) as a function of the leaves.
double value(const GradientCase& given, const std::vector<Tensor>& leaves) {
  NoGradScope no_grad;
  const std::vector<double> y = given.function(leaves).to_vector<double>();
  const std::vector<double> dy = output_gradient(given, std::ssize(y));
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
  return sum;
}

std::vector<double> differences(const GradientCase& given, std::size_t leaf) {
  std::vector<Tensor> leaves = make_leaves(given);
  const std::vector<double> at = leaf_values(given, leaf);
  auto moved = [&](std::size_t place, double step) {
    std::vector<double> values = at;
    values[place] += step;
    leaves[leaf] = Tensor::from(values, given.leaves[leaf].second, kOracle);
    return value(given, leaves);
  };
  std::vector<double> result;
  for (std::size_t i = 0; i < at.size(); ++i) {
    result.push_back((moved(i, kStep) - moved(i, -kStep)) / (2 * kStep));
  }
  return result;
}

void check_kinks(const GradientCase& given) {
  for (double x : leaf_values(given, 0)) {
    for (double kink : given.kinks) REQUIRE(std::abs(x - kink) > 100 * kStep);
  }
}

void compare(const std::vector<double>& actual, const std::vector<double>& expected) {
  REQUIRE(actual.size() == expected.size());
  double scale = 1, worst = 0;
  std::size_t place = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    scale = std::max(scale, std::abs(expected[i]));
    const double error = std::abs(actual[i] - expected[i]);
    if (error <= worst) continue;
    worst = error;
    place = i;
  }
  INFO("largest error at " << place << ": " << actual[place] << ", expected " << expected[place]);
  CHECK(worst <= kTolerance * scale);
}

}  // namespace

std::vector<double> leaf_values(const GradientCase& given, std::size_t leaf) {
  const auto& [name, shape] = given.leaves[leaf];
  return signed_values(given.name + "/" + name, shape.count());
}

void check_gradients(const GradientCase& given) {
  INFO(given.name);
  check_kinks(given);
  std::vector<Tensor> leaves = make_leaves(given);
  for (Tensor& leaf : leaves) leaf.set_requires_grad();
  const Tensor y = given.function(leaves);
  backward({y}, {Tensor::from(output_gradient(given, y.numel()), y.shape(), kOracle)});
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    INFO("gradient of " << given.leaves[i].first);
    REQUIRE(leaves[i].grad().defined());
    CHECK(leaves[i].grad().shape() == leaves[i].shape());
    compare(leaves[i].grad().to_vector<double>(), differences(given, i));
  }
}

}  // namespace convoy::testing
