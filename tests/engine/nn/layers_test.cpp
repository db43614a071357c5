// Layers: initial values, settings and texts; the network as a list of layers.
#include "engine/nn/layers.h"

#include <algorithm>
#include <cmath>

#include "engine/nn/network.h"
#include "kernels/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

using testing::expect_error;

struct Spread {
  double mean = 0, deviation = 0, largest = 0;
};

Spread spread_of(const Tensor& x) {
  const auto values = x.to_vector<double>();
  const auto count = static_cast<double>(values.size());
  Spread result;
  for (double value : values) {
    result.mean += value / count;
    result.largest = std::max(result.largest, std::abs(value));
  }
  for (double value : values) result.deviation += std::pow(value - result.mean, 2) / count;
  result.deviation = std::sqrt(result.deviation);
  return result;
}

void check_uniform(const Tensor& x, double bound) {
  const Spread spread = spread_of(x);
  CHECK(spread.largest <= bound);
  CHECK(spread.largest > 0.99 * bound);
  CHECK(std::abs(spread.mean) < 0.03 * bound);
  CHECK(std::abs(spread.deviation - bound / std::sqrt(3)) < 0.02 * bound);
}

Tensor images(const Shape& shape) {
  return Tensor::ones(shape);
}

}  // namespace

TEST_CASE("layers: PyTorch's initial values") {
  Conv2d conv(64, 32, {3, 5}, {.groups = 2});
  conv.initialize(1);
  check_uniform(conv.weight, 1 / std::sqrt(32.0 * 15));
  CHECK(spread_of(conv.bias).largest <= 1 / std::sqrt(32.0 * 15));
  CHECK(spread_of(conv.bias).deviation > 0);
  Linear linear(256, 100);
  linear.initialize(1);
  check_uniform(linear.weight, 1.0 / 16);
  CHECK(spread_of(linear.bias).largest <= 1.0 / 16);
  CHECK(spread_of(linear.bias).deviation > 0);
}

TEST_CASE("layers: a ResNet's convolutions are normal by fan-out") {
  Conv2d conv(64, 128, 3, {.stride = 2}, false, Conv2dInit::normal_fan_out);
  conv.initialize(1);
  const double expected = std::sqrt(2.0 / (128 * 9));
  const Spread spread = spread_of(conv.weight);
  CHECK(std::abs(spread.mean) < 0.02 * expected);
  CHECK(std::abs(spread.deviation - expected) < 0.02 * expected);
  CHECK(spread.largest > 3.5 * expected);
  CHECK_FALSE(conv.bias.defined());
}

TEST_CASE("layers: values depend on the seed and the full name alone") {
  Sequential one, two;
  one.add("a", std::make_shared<Linear>(3, 2)).add("b", std::make_shared<Linear>(3, 2));
  two.add("b", std::make_shared<Linear>(3, 2)).add("a", std::make_shared<Linear>(3, 2));
  auto values = [](const Sequential& module, std::size_t child) {
    return module.children()[child].second->parameters()[0].to_vector<float>();
  };
  one.initialize(7);
  two.initialize(7);
  CHECK(values(one, 0) == values(two, 1));
  CHECK(values(one, 0) != values(one, 1));
  Linear alone(3, 2);
  alone.initialize(7, "a");  // as a stage that holds this layer alone
  CHECK(alone.weight.to_vector<float>() == values(one, 0));
  two.initialize(8);
  CHECK(values(one, 0) != values(two, 1));
}

TEST_CASE("layers: new ones draw from manual_seed") {
  manual_seed(3);
  const auto first = Linear(3, 2).weight.to_vector<float>();
  const auto second = Linear(3, 2).weight.to_vector<float>();
  CHECK(first != second);
  manual_seed(3);
  CHECK(Linear(3, 2).weight.to_vector<float>() == first);
}

TEST_CASE("layers: none are drawn where the maker draws them later") {
  manual_seed(3);
  const auto first = Linear(3, 2).weight.to_vector<float>();
  manual_seed(3);
  {
    NoInitializationScope later;
    CHECK(spread_of(Linear(3, 2).weight).largest == 0);
    CHECK(spread_of(Conv2d(1, 1, 3).weight).largest == 0);
  }
  CHECK(Linear(3, 2).weight.to_vector<float>() == first);
}

TEST_CASE("layers: texts") {
  CHECK(Conv2d(4, 8, {3, 5}, {.stride = 2, .groups = 2}).describe() ==
        "Conv2d(4, 8, 3x5, stride 2, groups 2)");
  CHECK(Conv2d(1, 1, 1).describe() == "Conv2d(1, 1, 1x1)");
  CHECK(Linear(4, 2).describe() == "Linear(4, 2)");
  CHECK(BatchNorm2d(4).describe() == "BatchNorm2d(4)");
  CHECK(BatchNorm2d(4, true, true).describe() == "BatchNorm2d(4) + add + ReLU");
  CHECK(MaxPool2d({.kernel = 3, .stride = Pair(2)}).describe() == "MaxPool2d(3x3, stride 2)");
}

TEST_CASE("layers: bad settings") {
  expect_error(ErrorKind::usage, {"Conv2d", "3 to 4", "2 groups"},
               [] { Conv2d(3, 4, 1, {.groups = 2}); });
  expect_error(ErrorKind::usage, {"Conv2d", "0x1"}, [] { Conv2d(3, 4, {0, 1}); });
  expect_error(ErrorKind::usage, {"Linear", "0 to 4"}, [] { Linear(0, 4); });
}

TEST_CASE("network: a layer reads any earlier one") {
  Network network("n", 2, true, 2);
  const int first = network.add("norm", std::make_shared<BatchNorm2d>(2));
  network.add("relu", std::make_shared<Relu>());
  network.add("join", std::make_shared<BatchNorm2d>(2, false, true), {1, first});
  network.add("twice", std::make_shared<BatchNorm2d>(2, false, true), {2, 2});
  network.add("input", std::make_shared<BatchNorm2d>(2, false, true), {3, Network::kInput});
  network.eval();
  const Tensor x = Tensor::from(std::vector<float>{1, -1, 2, -2}, {2, 2});
  // Fresh running values make the norms the identity, but for epsilon.
  const double s = 1 / std::sqrt(1 + 1e-5);
  auto expected = [&](double value) {
    const double norm = value * s, join = std::max(norm, 0.0) * s + norm;
    return (join * s + join) * s + value;
  };
  const auto y = network.forward(x).to_vector<double>();
  CHECK(std::abs(y[0] - expected(1)) < 1e-5);
  CHECK(std::abs(y[3] - expected(-2)) < 1e-5);
  expect_error(ErrorKind::internal, {"ahead", "9"},
               [&] { network.add("ahead", std::make_shared<Relu>(), {9}); });
  expect_error(ErrorKind::usage, {"empty", "no layers"},
               [&] { Network("empty", 1, true, 1).forward(x); });
}

TEST_CASE("network: the first layer that is not finite") {
  Network network("n", 1, false, 1);
  network.add("conv", std::make_shared<Conv2d>(1, 2, 1));
  network.add("norm", std::make_shared<BatchNorm2d>(2, true));
  network.add("last", std::make_shared<Conv2d>(2, 1, 1));
  const NamedTensors before = network.named_buffers();
  auto find = [&](float value) {
    return network.first_non_finite(Tensor::full({2, 1, 2, 2}, value));
  };
  CHECK(find(1).first.empty());
  CHECK(find(INFINITY) == std::pair<std::string, double>("input", INFINITY));
  auto norm = std::dynamic_pointer_cast<BatchNorm2d>(network.layers()[1].module);
  norm->bias.fill_(INFINITY);
  CHECK(find(1).first == "norm");
  norm->bias.fill_(0);
  std::dynamic_pointer_cast<Conv2d>(network.layers()[2].module)->weight.fill_(NAN);
  const auto found = find(1);
  CHECK(found.first == "last");
  CHECK(std::isnan(found.second));
  CHECK(norm->num_batches_tracked == 0);
  CHECK(norm->running_mean.to_vector<float>() == std::vector<float>{0, 0});
}

TEST_CASE("network: a search that fails leaves the batch norms as they were") {
  Network network("n", 1, false, 1);
  auto on = std::make_shared<BatchNorm2d>(1), off = std::make_shared<BatchNorm2d>(1);
  off->set_update_running(false);
  network.add("on", on);
  network.add("off", off);
  network.add("rows", std::make_shared<Linear>(1, 1));
  expect_error(ErrorKind::usage, {"linear"}, [&] {
    network.first_non_finite(Tensor::ones({2, 1, 2, 2}));
  });
  CHECK(on->updates_running());
  CHECK_FALSE(off->updates_running());
}

TEST_CASE("network: forward frees what nobody reads any more") {
  Sequential pool({std::make_shared<MaxPool2d>(Pool2dOptions{.kernel = 2, .stride = {}}),
                   std::make_shared<GlobalAvgPool2d>()});
  CHECK(pool(images({2, 3, 4, 4})).shape() == Shape{2, 3});
}

}  // namespace convoy::testing
