#include "tests/reference_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/base/error.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Digest read_digest(const Json& given) {
  check_keys(given, {"first", "norm", "projection", "size"});
  Digest result;
  result.first = given.at("first").get<std::vector<double>>();
  result.norm = given.at("norm").get<double>();
  result.projection = given.at("projection").get<double>();
  const auto size = given.at("size").get<std::size_t>();
  if (result.first.size() != std::min<std::size_t>(size, 4)) {
    CONVOY_FAIL(data, "digest: {} first values of a tensor of {}", result.first.size(), size);
  }
  return result;
}

}  // namespace

std::string title(const Json& given) {
  if (!given.is_object()) return "no case: " + given.dump().substr(0, 60);
  if (given.contains("key")) return given.at("key").dump();
  std::string text;
  for (const char* key : {"op", "model", "classes", "batch", "target", "micro_batch"}) {
    if (given.contains(key)) text += fmt::format("{} {} ", key, given.at(key).dump());
  }
  return text.empty() ? "a case without op or model" : text;
}

void run_case(const Json& given, const TensorOptions& options) {
  if (!given.is_object()) CONVOY_FAIL(data, "case: {} is not an object", title(given));
  if (given.contains("op")) return run_op_case(given, options);
  if (!given.contains("model")) CONVOY_FAIL(data, "case: has neither 'op' nor 'model'");
  if (given.contains("target")) return run_regression_case(given, options);
  run_training_case(given, options);
}

void check_keys(const Json& given, const std::vector<std::string>& required,
                const std::vector<std::string>& optional) {
  if (!given.is_object()) CONVOY_FAIL(data, "case: {} is not an object", given.dump());
  for (const std::string& key : required) {
    if (!given.contains(key)) CONVOY_FAIL(data, "{}: '{}' is missing", title(given), key);
  }
  for (const auto& [key, value] : given.items()) {
    if (contains(required, key) || contains(optional, key)) continue;
    CONVOY_FAIL(data, "{}: '{}' is not known", title(given), key);
  }
}

Tensor formula_tensor(const std::string& name, const Shape& shape, const TensorOptions& options,
                      double factor) {
  std::vector<double> values = signed_values(name, shape.count());
  for (double& value : values) value *= factor;
  return Tensor::from(values, shape, options);
}

Tensor formula_labels(const std::string& name, std::int64_t count, std::int64_t classes,
                      const TensorOptions& options) {
  std::vector<std::int64_t> labels;
  for (double value : uniform(name, count)) {
    labels.push_back(static_cast<std::int64_t>(value * static_cast<double>(classes)));
  }
  return Tensor::from(labels, {count}, options.device);
}

void check_digest(const std::string& what, const std::string& probe, const Tensor& actual,
                  const Json& expected, double tolerance, DigestParts parts) {
  INFO(what);
  const Digest wanted = read_digest(expected);
  REQUIRE(actual.defined());
  REQUIRE(actual.numel() == expected.at("size").get<std::int64_t>());
  Digest found = digest(probe, actual.to_vector<double>());
  if (parts == DigestParts::projection) {
    found.first = wanted.first;
    found.norm = wanted.norm;
  }
  CHECK(difference(found, wanted, tolerance) == kNoDifference);
}

}  // namespace convoy::testing
