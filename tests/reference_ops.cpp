// Operator cases: one op through autograd, its output, every gradient, running statistics.
#include <nlohmann/json.hpp>

#include "engine/autograd/backward.h"
#include "engine/ops/ops.h"
#include "kernels/base/error.h"
#include "tests/reference_case.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

const std::vector<std::string> kResults = {"op", "key", "x", "y_shape", "y", "grads"};

// One case on its way: operands by formula, leaves by the name of their gradient.
struct OpRun {
  const Json& given;
  TensorOptions options;
  std::string key;
  std::vector<std::pair<std::string, Tensor>> leaves;

  Shape shape(const char* name) const {
    return Shape(given.at(name).get<std::vector<std::int64_t>>());
  }
  void keys(std::vector<std::string> own, const std::vector<std::string>& optional = {}) const {
    own.insert(own.end(), kResults.begin(), kResults.end());
    check_keys(given, own, optional);
  }
  Tensor leaf(const std::string& name, const Shape& extents) {
    return add(name, formula_tensor(key + "/" + name, extents, options));
  }
  Tensor add(const std::string& name, Tensor value) {
    value.set_requires_grad();
    leaves.emplace_back(name, value);
    return value;
  }
  bool has_gradient(const char* name) const { return given.at("grads").contains(name); }
};

// A number stands for both directions.
Pair pair_of(const Json& given, const char* key, std::int64_t otherwise) {
  if (!given.contains(key)) return otherwise;
  const Json& value = given.at(key);
  if (value.is_number_integer()) return value.get<std::int64_t>();
  const auto both = value.get<std::vector<std::int64_t>>();
  if (both.size() != 2) CONVOY_FAIL(data, "{}: '{}' is not a pair", title(given), key);
  return {both[0], both[1]};
}

Tensor run_conv2d(OpRun& run) {
  run.keys({"w"}, {"stride", "padding", "dilation", "groups"});
  Conv2dOptions options;
  options.stride = pair_of(run.given, "stride", 1);
  options.padding = pair_of(run.given, "padding", 0);
  options.dilation = pair_of(run.given, "dilation", 1);
  options.groups = run.given.value("groups", std::int64_t{1});
  const Tensor x = run.leaf("x", run.shape("x"));
  const Tensor w = run.leaf("w", run.shape("w"));
  const Tensor b = run.has_gradient("b") ? run.leaf("b", {w.size(0)}) : Tensor();
  return conv2d(x, w, b, options);
}

Tensor run_batch_norm(OpRun& run) {
  run.keys({"running_mean", "running_var"}, {"momentum", "eps"});
  const Tensor x = run.leaf("x", run.shape("x"));
  const std::int64_t channels = x.size(1);
  const Tensor w =
      run.add("w", Tensor::from(uniform(run.key + "/w", channels), {channels}, run.options));
  const Tensor b = run.leaf("b", {channels});
  const Tensor mean = Tensor::zeros({channels}, run.options);
  const Tensor var = Tensor::ones({channels}, run.options);
  BatchNormOptions options;
  options.momentum = run.given.value("momentum", 0.1);
  options.epsilon = run.given.value("eps", 1e-5);
  Tensor y = batch_norm(x, w, b, mean, var, options);
  const double tolerance = run.options.dtype == DType::f64 ? 1e-8 : 1e-5;
  check_digest("running_mean", "running_mean", mean, run.given.at("running_mean"), tolerance);
  check_digest("running_var", "running_var", var, run.given.at("running_var"), tolerance);
  return y;
}

Pool2dOptions pool_options(const Json& given) {
  Pool2dOptions options;
  options.kernel = pair_of(given, "kernel", 1);
  if (given.contains("stride")) options.stride = pair_of(given, "stride", 1);
  options.padding = pair_of(given, "padding", 0);
  return options;
}

Tensor run_max_pool2d(OpRun& run) {
  run.keys({"kernel"}, {"stride", "padding"});
  return max_pool2d(run.leaf("x", run.shape("x")), pool_options(run.given));
}

// Without a kernel: the mean over the whole image.
Tensor run_avg_pool2d(OpRun& run) {
  if (run.given.contains("kernel")) {
    run.keys({"kernel"}, {"stride", "padding"});
    return avg_pool2d(run.leaf("x", run.shape("x")), pool_options(run.given));
  }
  run.keys({});
  return global_avg_pool2d(run.leaf("x", run.shape("x")));
}

Tensor run_linear(OpRun& run) {
  run.keys({"w"});
  const Tensor x = run.leaf("x", run.shape("x"));
  const Tensor w = run.leaf("w", run.shape("w"));
  const Tensor b = run.has_gradient("b") ? run.leaf("b", {w.size(0)}) : Tensor();
  return linear(x, w, b);
}

// The logits are eight times x.
Tensor run_cross_entropy(OpRun& run) {
  run.keys({"smoothing"});
  const Tensor x = run.leaf("x", run.shape("x"));
  const Tensor logits = multiply(x, Tensor::full(x.shape(), 8, run.options));
  CrossEntropyOptions options;
  options.label_smoothing = run.given.at("smoothing").get<double>();
  return cross_entropy(logits, formula_labels(run.key + "/t", x.size(0), x.size(1), run.options),
                       options);
}

Tensor run_unary(OpRun& run, Tensor (*op)(const Tensor&)) {
  run.keys({});
  return op(run.leaf("x", run.shape("x")));
}

Tensor run_op(OpRun& run) {
  const auto op = run.given.at("op").get<std::string>();
  if (op == "conv2d") return run_conv2d(run);
  if (op == "batch_norm") return run_batch_norm(run);
  if (op == "max_pool2d") return run_max_pool2d(run);
  if (op == "avg_pool2d") return run_avg_pool2d(run);
  if (op == "linear") return run_linear(run);
  if (op == "cross_entropy") return run_cross_entropy(run);
#define CONVOY_RUN_UNARY(name, value, derivative) \
  if (op == #name) return run_unary(run, name);
  CONVOY_UNARY_LIST(CONVOY_RUN_UNARY)
#undef CONVOY_RUN_UNARY
  CONVOY_FAIL(data, "case: the op '{}' is not known", op);
}

double gradient_tolerance(const OpRun& run, const std::string& leaf) {
  if (run.options.dtype == DType::f64) return 1e-8;
  return run.given.at("op") == "batch_norm" && leaf == "x" ? 1e-4 : 1e-5;
}

}  // namespace

void run_op_case(const Json& given, const TensorOptions& options) {
  if (!given.contains("key")) CONVOY_FAIL(data, "{}: 'key' is missing", title(given));
  OpRun run{given, options, given.at("key").get<std::string>(), {}};
  const Tensor y = run_op(run);
  CHECK(y.shape().extents() == given.at("y_shape").get<std::vector<std::int64_t>>());
  check_digest("y", "y", y, given.at("y"), options.dtype == DType::f64 ? 1e-8 : 1e-5);
  backward({y}, {formula_tensor(run.key + "/dy", y.shape(), options)});
  CHECK(given.at("grads").size() == run.leaves.size());
  for (const auto& [name, leaf] : run.leaves) {
    if (!given.at("grads").contains(name)) CONVOY_FAIL(data, "no gradient of {}", name);
    check_digest("gradient of " + name, "d" + name, leaf.grad(), given.at("grads").at(name),
                 gradient_tolerance(run, name));
  }
}

}  // namespace convoy::testing
