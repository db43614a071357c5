// Random numbers: a function of (seed, name, place) alone; Philox against its published values;
// means and deviations.
#include "engine/tensor/random.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

#include "engine/tensor/tensor.h"
#include "tests/support/catch.h"

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
