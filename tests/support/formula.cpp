#include "tests/support/formula.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace convoy::testing {
namespace {

std::uint64_t fnv1a64(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (unsigned char byte : text) hash = (hash ^ byte) * 0x100000001B3;
  return hash;
}

std::uint64_t splitmix64(std::uint64_t seed) {
  std::uint64_t z = seed + 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace

std::vector<double> uniform(std::string_view name, std::int64_t count) {
  std::uint64_t seed = fnv1a64(name);
  std::vector<double> result(count);
  for (double& value : result) value = double(splitmix64(seed++) >> 11) * 0x1p-53;
  return result;
}

std::vector<double> signed_values(std::string_view name, std::int64_t count) {
  std::vector<double> result = uniform(name, count);
  for (double& value : result) value = 2 * value - 1;
  return result;
}

std::vector<double> integers(std::string_view name, std::int64_t count, int limit) {
  std::vector<double> result = uniform(name, count);
  for (double& value : result) value = std::floor(value * (2 * limit + 1)) - limit;
  return result;
}

Digest digest(std::string_view name, const std::vector<double>& values) {
  const auto probe = signed_values("probe/" + std::string(name), std::ssize(values));
  Digest result;
  result.first.assign(values.begin(), values.begin() + std::min<std::size_t>(4, values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    result.norm += values[i] * values[i];
    result.projection += values[i] * probe[i];
  }
  result.norm = std::sqrt(result.norm);
  return result;
}

std::string difference(const Digest& actual, const Digest& expected, double tolerance) {
  const double allowed = tolerance * expected.norm;
  std::string text;
  auto hold = [&](const std::string& part, double is, double wanted) {
    if (std::abs(is - wanted) <= allowed) return;
    text += fmt::format("{} is {:.17g}, expected {:.17g}; ", part, is, wanted);
  };
  if (actual.first.size() != expected.first.size()) text = "other number of values; ";
  for (std::size_t i = 0; i < std::min(actual.first.size(), expected.first.size()); ++i) {
    hold(fmt::format("value {}", i), actual.first[i], expected.first[i]);
  }
  hold("norm", actual.norm, expected.norm);
  hold("projection", actual.projection, expected.projection);
  return text;
}

}  // namespace convoy::testing
