// Random numbers: a function of (seed, name, place) alone; Philox against its published values;
// means and deviations.
#include "engine/tensor/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <thread>

#include "engine/tensor/tensor.h"
#include "kernels/base/philox.h"
#include "kernels/cpu/layout.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

namespace convoy::testing {
namespace {

using Values = std::vector<double>;

double mean_of(const Values& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation_of(const Values& values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

}  // namespace

TEST_CASE("random: the same seed and name give the same numbers, others give others") {
  const Values numbers = RandomStream(1, "a").uniform(101);
  CHECK(RandomStream(1, "a").uniform(101) == numbers);
  CHECK(RandomStream(2, "a").uniform(101) != numbers);
  CHECK(RandomStream(1, "b").uniform(101) != numbers);
  CHECK(RandomStream(1 + (std::uint64_t{1} << 32), "a").uniform(101) != numbers);
  const Values longer = RandomStream(1, "a").uniform(200);
  CHECK(Values(longer.begin(), longer.begin() + 101) == numbers);
  CHECK(RandomStream(1, "a").normal(7) == RandomStream(1, "a").normal(7));
  CHECK(RandomStream(1, "a").uniform(0).empty());
}

TEST_CASE("random: values of fixtures/make_philox_values.py") {
  const RandomStream stream(0x0123456789ABCDEF, "conv1.weight");
  CHECK(stream.uniform(5) == Values{0.6744902777400276, 0.007784968231608791, 0.7614253784829281,
                                    0.6245690910117684, 0.9953823916853725});
  const Values normal = stream.normal(2);
  CHECK(std::abs(normal[0] - 1.4964489325972627) < 1e-15);
  CHECK(std::abs(normal[1] - 0.07325633282657038) < 1e-15);
}

TEST_CASE("random: uniform numbers") {
  const Values numbers = RandomStream(5, "uniform").uniform(100001);
  CHECK(numbers.size() == 100001);
  CHECK(*std::min_element(numbers.begin(), numbers.end()) >= 0);
  CHECK(*std::max_element(numbers.begin(), numbers.end()) < 1);
  CHECK(std::abs(mean_of(numbers) - 0.5) < 0.005);
  CHECK(std::abs(deviation_of(numbers) - std::sqrt(1.0 / 12)) < 0.003);
}

TEST_CASE("random: normal numbers") {
  const Values numbers = RandomStream(5, "normal").normal(100001);
  CHECK(numbers.size() == 100001);
  CHECK(std::abs(mean_of(numbers)) < 0.015);
  CHECK(std::abs(deviation_of(numbers) - 1) < 0.01);
  const auto beyond_two = std::count_if(numbers.begin(), numbers.end(),
                                        [](double value) { return std::abs(value) > 2; });
  CHECK(std::abs(static_cast<double>(beyond_two) / 100001 - 0.0455) < 0.003);
}

TEST_CASE("random: numbers of whole blocks are those of single ones, by the formulas") {
  const std::uint64_t seed = 0xFEDCBA9876543210;
  const Values uniform = RandomStream(seed, "").uniform(40001);
  const Values normal = RandomStream(seed, "").normal(40001);
  const std::uint64_t stream = 0xCBF29CE484222325;  // FNV-1a of no text
  double worst = 0;
  for (std::size_t i = 0; i < uniform.size(); ++i) {
    const PhiloxBlock block =
        philox({static_cast<std::uint32_t>(i / 2), 0, low_half(stream), high_half(stream)},
               {low_half(seed), high_half(seed)});
    const double a = unit_of(std::uint64_t{block[0]} << 32 | block[1]);
    const double b = unit_of(std::uint64_t{block[2]} << 32 | block[3]);
    REQUIRE(uniform[i] == (i % 2 ? b : a));
    const double radius = std::sqrt(-2 * std::log1p(-a)), angle = 2 * std::numbers::pi * b;
    const double expected = radius * (i % 2 ? std::sin(angle) : std::cos(angle));
    worst = std::max(worst, std::abs(normal[i] - expected) / std::abs(expected));
  }
  CHECK(worst < 1e-15);
}

TEST_CASE("random: fill writes what normal and uniform draw, on every device and in any layout") {
  const RandomStream stream(3, "weight");
  const Shape shape = {32, 16, 3, 3};
  const Values normal = stream.normal(shape.count()), uniform = stream.uniform(shape.count());
  for (const Device& device : tested_devices()) {
    CAPTURE(to_string(device));
    const Tensor tensor = Tensor::zeros(shape, {DType::f32, device});
    stream.fill(tensor, RandomKind::normal, 0.125);
    const auto drawn = tensor.to_vector<float>();
    stream.fill(tensor, RandomKind::symmetric, 0.3);
    const auto even = tensor.to_vector<float>();
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      REQUIRE(drawn[i] == static_cast<float>(normal[i] * 0.125));
      REQUIRE(even[i] == static_cast<float>((2 * uniform[i] - 1) * 0.3));
    }
  }
  const Tensor doubles = Tensor::zeros(shape, {DType::f64, "ref:0"});
  stream.fill(doubles, RandomKind::unit, 1);
  CHECK(doubles.to_vector<double>() == uniform);
  const Tensor blocked = Tensor::zeros({2, 16, 4, 4}).with_layout(cpu::kBlock8);
  stream.fill(blocked, RandomKind::unit, 1);
  CHECK(blocked.to_vector<float>() ==
        std::vector<float>(uniform.begin(), uniform.begin() + 2 * 16 * 4 * 4));
}

TEST_CASE("random: neighbours are not alike") {
  const Values numbers = RandomStream(9, "pairs").normal(100000);
  double product = 0;
  for (std::size_t i = 0; i + 1 < numbers.size(); ++i) product += numbers[i] * numbers[i + 1];
  CHECK(std::abs(product / 1e5) < 0.015);
}

TEST_CASE("random: manual_seed repeats rand and randn") {
  manual_seed(42);
  const Values first = Tensor::rand({3, 5}).to_vector<double>();
  const Values second = Tensor::randn({4}).to_vector<double>();
  const Values third = Tensor::rand({3, 5}).to_vector<double>();
  CHECK(first != third);
  manual_seed(42);
  CHECK(Tensor::rand({3, 5}).to_vector<double>() == first);
  CHECK(Tensor::randn({4}).to_vector<double>() == second);
  manual_seed(43);
  CHECK(Tensor::rand({3, 5}).to_vector<double>() != first);
  manual_seed(42);
  CHECK(Tensor::rand({3, 5}, {DType::f32, "ref:0"}).to_vector<double>() == first);
}

TEST_CASE("random: every thread draws its own numbers, from seed 0 on") {
  manual_seed(0);
  const Values first = Tensor::rand({4}).to_vector<double>();
  manual_seed(42);
  Values others;
  std::thread([&] { others = Tensor::rand({4}).to_vector<double>(); }).join();
  CHECK(others == first);
  const Values here = Tensor::rand({4}).to_vector<double>();
  manual_seed(42);
  CHECK(Tensor::rand({4}).to_vector<double>() == here);
}

}  // namespace convoy::testing
