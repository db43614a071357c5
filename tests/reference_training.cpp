// Training and regression cases: a model by name with parameters by formula, trained by SGD.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/autograd/grad_mode.h"
#include "engine/nn/layers.h"
#include "kernels/base/error.h"
#include "models/models.h"
#include "tests/reference_case.h"
#include "tests/reference_trainee.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

void set_by_formula(Tensor parameter, const std::string& name, double bound) {
  parameter.copy_(formula_tensor(name, parameter.shape(), parameter.options(), bound));
}

void set_batch_norm_by_formula(BatchNorm2d& norm, const std::string& name) {
  std::vector<double> weight = uniform(name + ".weight", norm.weight.numel());
  for (double& value : weight) value += 0.5;
  norm.weight.copy_(Tensor::from(weight, norm.weight.shape(), norm.weight.options()));
  set_by_formula(norm.bias, name + ".bias", 0.2);
}

// PyTorch's names start the formula; He-uniform convolutions, 1 / sqrt(fan_in) in linear layers.
void set_by_formula(Network& network) {
  network.for_each([](const std::string& name, Module& module) {
    if (auto* norm = dynamic_cast<BatchNorm2d*>(&module)) set_batch_norm_by_formula(*norm, name);
    if (auto* conv = dynamic_cast<Conv2d*>(&module)) {
      const std::int64_t fan_in = conv->weight.numel() / conv->weight.size(0);
      set_by_formula(conv->weight, name + ".weight", std::sqrt(6 / static_cast<double>(fan_in)));
    }
    if (auto* linear = dynamic_cast<Linear*>(&module)) {
      const double bound = 1 / std::sqrt(static_cast<double>(linear->weight.size(1)));
      set_by_formula(linear->weight, name + ".weight", bound);
      set_by_formula(linear->bias, name + ".bias", bound);
    }
  });
}

}  // namespace

std::shared_ptr<Network> formula_model(const Json& given, const TensorOptions& options) {
  const auto classes = given.value("classes", std::int64_t{1});
  std::shared_ptr<Network> network = make_model(given.at("model").get<std::string>(), classes);
  network->to(options.device);
  network->to(options.dtype);
  set_by_formula(*network);
  return network;
}

namespace {

Shape shape_of(const Json& given, const char* key) {
  return Shape(given.at(key).get<std::vector<std::int64_t>>());
}

void check_digests(const std::string& what, const std::string& probe, const NamedTensors& actual,
                   const Json& expected, double tolerance, DigestParts parts) {
  CHECK(actual.size() == expected.size());
  for (const auto& [name, tensor] : actual) {
    if (!expected.contains(name)) CONVOY_FAIL(data, "{}: nothing given for {}", what, name);
    check_digest(what + " of " + name, probe + "/" + name, tensor, expected.at(name), tolerance,
                 parts);
  }
}

// Tolerances of a training case: float32 as three times what PyTorch itself is off, or a floor.
class Bounds {
 public:
  Bounds(const Json& given, bool single)
      : single_(single), deviation_(given.value("float32_deviation", Json::object())) {
    check_keys(deviation_, {},
               {"losses", "logits", "grads", "running", "params_after", "eval_logits"});
  }

  double of(const char* part, double floor) const {
    return single_ ? std::max(3 * deviation_.value(part, 0.0), floor) : 1e-8;
  }
  // The loss after an update may also be off by what the gradients' own bound lets the update miss:
  // arithmetic in float64 on weights rounded to float32 is off by 4e-3 there, PyTorch's deviation
  // is one draw of that noise and may be ten times smaller.
  double of_loss(std::size_t step, const std::vector<double>& losses) const {
    if (!single_) return 1e-8;
    const Json given = deviation_.value("losses", Json::array());
    const double stated = step < given.size() ? 3 * given.at(step).get<double>() : 0.0;
    if (step == 0) return std::max(stated, 1e-5);
    const double moved = std::abs(losses[step] - losses[step - 1]) / std::abs(losses[step]);
    return std::max({stated, of("grads", 1e-3) * moved, 1e-5});
  }
  bool single() const { return single_; }
  DigestParts parts() const { return single_ ? DigestParts::projection : DigestParts::all; }

 private:
  bool single_;
  Json deviation_;
};

double largest(const std::vector<double>& values) {
  double result = 0;
  for (double value : values) result = std::max(result, std::abs(value));
  return result;
}

// Rows of logits against a list of lists; the largest error is at most `allowed`.
void check_rows(const char* what, const std::vector<double>& actual, const Json& expected,
                double allowed) {
  std::vector<double> wanted;
  for (const Json& row : expected) {
    for (const Json& value : row) wanted.push_back(value.get<double>());
  }
  INFO(what);
  REQUIRE(actual.size() == wanted.size());
  std::vector<double> error;
  for (std::size_t i = 0; i < wanted.size(); ++i) error.push_back(actual[i] - wanted[i]);
  CHECK(largest(error) <= allowed);
  CHECK(std::none_of(error.begin(), error.end(), [](double e) { return std::isnan(e); }));
}

double largest_of(const Json& rows) {
  double result = 0;
  for (const Json& row : rows) {
    result = std::max(result, largest(row.get<std::vector<double>>()));
  }
  return result;
}

// On one device, micro-batch by micro-batch.
class Alone : public Trainee {
 public:
  Alone(const Json& given, const TensorOptions& options)
      : plan_(training_plan(given)),
        network_(formula_model(given, options)),
        images_(formula_tensor("input", plan_.shape, options, 2)),
        labels_(formula_labels("label", plan_.shape[0], plan_.classes, options)),
        optimizer_(network_->named_parameters(), plan_.sgd) {}

  double step(std::vector<double>& logits) override {
    optimizer_.zero_grad();
    const std::vector<Tensor> image_parts = images_.split(plan_.micro_batch);
    const std::vector<Tensor> label_parts = labels_.split(plan_.micro_batch);
    double loss = 0;
    for (std::size_t i = 0; i < image_parts.size(); ++i) {
      const Tensor out = network_->forward(image_parts[i]);
      const Tensor part = cross_entropy(out, label_parts[i],
                                        {.label_smoothing = plan_.label_smoothing,
                                         .scale = 1 / static_cast<double>(images_.size(0))});
      part.backward();
      loss += part.item();
      for (double value : out.to_vector<double>()) logits.push_back(value);
    }
    optimizer_.step();
    return loss;
  }

  NamedTensors gradients() override {
    NamedTensors gradients = network_->named_parameters();
    for (auto& [name, parameter] : gradients) parameter = parameter.grad();
    return gradients;
  }
  NamedTensors running() override { return network_->named_buffers(); }
  NamedTensors parameters() override { return network_->named_parameters(); }

  std::vector<double> evaluate() override {
    const NoGradScope no_grad;
    network_->eval();
    return network_->forward(images_).to_vector<double>();
  }

 private:
  const TrainingPlan plan_;
  std::shared_ptr<Network> network_;
  Tensor images_, labels_;
  Sgd optimizer_;
};

void check_first_step(const Json& given, Trainee& trainee, const Bounds& bounds,
                      const std::vector<double>& logits) {
  const double scale = bounds.single() ? 1 : largest_of(given.at("logits"));
  check_rows("logits", logits, given.at("logits"), bounds.of("logits", 1e-4) * scale);
  check_digests("gradient", "grad", trainee.gradients(), given.at("grads"),
                bounds.of("grads", 1e-3), bounds.parts());
  check_digests("running value", "running", trainee.running(), given.at("running"),
                bounds.of("running", 1e-5), bounds.parts());
}

void check_loss(std::size_t step, double loss, double expected, double tolerance) {
  INFO("step " << step + 1 << ": loss " << loss << ", expected " << expected);
  CHECK(std::abs(loss - expected) <= tolerance * std::abs(expected));
}

std::vector<double> losses_of(const Json& given) {
  auto losses = given.at("losses").get<std::vector<double>>();
  if (losses.empty()) CONVOY_FAIL(data, "{}: no losses", title(given));
  return losses;
}

}  // namespace

TrainingPlan training_plan(const Json& given) {
  check_keys(given,
             {"model", "classes", "batch", "micro_batch", "lr", "losses", "logits", "grads",
              "running", "params_after", "eval_logits"},
             {"momentum", "weight_decay", "label_smoothing", "float32_deviation"});
  TrainingPlan plan;
  plan.shape = shape_of(given, "batch");
  plan.classes = given.at("classes").get<std::int64_t>();
  plan.micro_batch = given.at("micro_batch").get<std::int64_t>();
  plan.label_smoothing = given.value("label_smoothing", 0.0);
  plan.sgd = {.lr = given.at("lr").get<double>(),
              .momentum = given.value("momentum", 0.0),
              .weight_decay = given.value("weight_decay", 0.0)};
  return plan;
}

void check_training(const Json& given, Trainee& trainee, DType dtype) {
  const Bounds bounds(given, dtype == DType::f32);
  const std::vector<double> losses = losses_of(given);
  for (std::size_t step = 0; step < losses.size(); ++step) {
    std::vector<double> logits;
    const double loss = trainee.step(logits);
    if (step < 2 || !bounds.single())
      check_loss(step, loss, losses[step], bounds.of_loss(step, losses));
    if (step == 0) check_first_step(given, trainee, bounds, logits);
  }
  check_digests("parameter", "param", trainee.parameters(), given.at("params_after"),
                bounds.of("params_after", 1e-4), bounds.parts());
  const Json& expected = given.at("eval_logits");
  check_rows("evaluation logits", trainee.evaluate(), expected,
             bounds.of("eval_logits", 1e-4) * largest_of(expected));
}

void run_training_case(const Json& given, const TensorOptions& options) {
  Alone alone(given, options);
  check_training(given, alone, options.dtype);
}

void run_regression_case(const Json& given, const TensorOptions& options) {
  check_keys(given, {"model", "batch", "target", "lr", "losses", "params_after"});
  const double tolerance = options.dtype == DType::f64 ? 1e-8 : 1e-5;
  const auto name = given.at("model").get<std::string>();
  std::shared_ptr<Network> network = formula_model(given, options);
  const Tensor x = formula_tensor(name + "/x", shape_of(given, "batch"), options, 2);
  const Tensor y = formula_tensor(name + "/y", shape_of(given, "target"), options, 2);
  Sgd optimizer(network->named_parameters(), {.lr = given.at("lr").get<double>()});
  const std::vector<double> losses = losses_of(given);
  for (std::size_t step = 0; step < losses.size(); ++step) {
    optimizer.zero_grad();
    const Tensor loss = mse_loss(network->forward(x), y);
    loss.backward();
    check_loss(step, loss.item(), losses[step], tolerance);
    optimizer.step();
  }
  check_digests("parameter", "param", network->named_parameters(), given.at("params_after"),
                tolerance, DigestParts::all);
}

}  // namespace convoy::testing
