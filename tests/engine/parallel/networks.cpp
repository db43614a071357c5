#include "tests/engine/parallel/networks.h"

#include <cmath>
#include <limits>

#include "engine/nn/layers.h"
#include "engine/ops/ops.h"
#include "engine/optim/optimizer.h"
#include "models/models.h"
#include "tests/support/formula.h"

namespace convoy::testing {
namespace {

constexpr std::int64_t kMostImages = 64;

Tensor rows(const std::string& name, const Shape& row, std::int64_t first, std::int64_t count,
            const Device& device) {
  const Shape all = row.with(0, kMostImages);
  return Tensor::from(signed_values(name, all.count()), all, TensorOptions{DType::f64, device})
      .slice(first, first + count);
}

std::shared_ptr<Module> placed(std::shared_ptr<Module> module, const Device& device) {
  module->to(DType::f64);
  module->to(device);
  return module;
}

std::shared_ptr<Module> make_linear(const Device& device, std::uint64_t seed) {
  auto module = std::make_shared<Linear>(4, 3);
  module->initialize(seed);
  return placed(module, device);
}

std::shared_ptr<Module> make_toy(const Device& device, std::uint64_t seed) {
  return placed(make_model("toy", 5, seed), device);
}

std::shared_ptr<Module> make_convolutions(const Device& device, std::uint64_t seed) {
  auto module = std::make_shared<Sequential>();
  module->add("conv1", std::make_shared<Conv2d>(3, 4, 3));
  auto norm = std::make_shared<BatchNorm2d>(4, true);
  module->add("bn1", norm);
  module->add("conv2", std::make_shared<Conv2d>(4, 6, 3, Conv2dOptions{.stride = 2}));
  module->add("pool", std::make_shared<GlobalAvgPool2d>());
  module->add("fc", std::make_shared<Linear>(6, 2));
  module->initialize(seed);
  norm->running_mean.copy_(Tensor::from(signed_values("mean", 4), {4}, Device()));
  norm->running_var.copy_(Tensor::from(uniform("var", 4), {4}, Device()));
  set_batch_norm_mode(*module, BatchNormMode::frozen);
  return placed(module, device);
}

}  // namespace

Tensor NetworkCase::images(std::int64_t first, std::int64_t count, const Device& device) const {
  return rows(name + "/x", image, first, count, device);
}

Tensor NetworkCase::targets(std::int64_t first, std::int64_t count, const Device& device) const {
  return rows(name + "/y", {1, out}, first, count, device);
}

const std::vector<NetworkCase>& network_cases() {
  static const std::vector<NetworkCase> cases{
      {"linear", make_linear, {1, 4}, 3},
      {"toy", make_toy, {1, 10}, 5},
      {"convolutions", make_convolutions, {1, 3, 7, 7}, 2},
  };
  return cases;
}

Tensor mean_loss(const Tensor& y, const Tensor& target) {
  return y.numel() > 0 ? mse_loss(y, target) : mse_loss(y, target, 0);
}

Values values_of(const Module& module) {
  Values all;
  for (const auto& [name, tensor] : module.state_dict()) {
    const Values own = tensor.to_vector<double>();
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

Values gradients_of(const Module& module) {
  Values all;
  for (const Tensor& parameter : module.parameters()) {
    if (!parameter.grad().defined()) continue;
    const Values own = parameter.grad().to_vector<double>();
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

double distance(const Values& a, const Values& b) {
  if (a.size() != b.size() || a.empty()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (!(difference <= largest)) largest = difference;  // NaN stays
  }
  return largest;
}

Trained train(Module& module, const std::function<void(int step)>& step) {
  Trained result;
  Sgd optimizer(module.named_parameters(), {.lr = 0.5, .momentum = 0.5});
  for (int number = 0; number < 3; ++number) {
    optimizer.zero_grad();
    step(number);
    if (number == 0) result.gradients = gradients_of(module);
    optimizer.step();
  }
  result.values = values_of(module);
  return result;
}

Trained train_alone(const NetworkCase& network, std::int64_t images, std::uint64_t seed) {
  const Device device = "ref:0";
  const auto module = network.make(device, seed);
  return train(*module, [&](int step) {
    const std::int64_t first = step * images;
    mean_loss((*module)(network.images(first, images, device)),
              network.targets(first, images, device))
        .backward();
  });
}

}  // namespace convoy::testing
