// The batch-norm layer: which statistics a forward uses, and when running ones change.
#include "engine/nn/layers.h"
#include "kernels/base/error.h"

namespace convoy {

BatchNorm2d::BatchNorm2d(std::int64_t channels, bool relu, bool residual)
    : relu_(relu), residual_(residual) {
  CONVOY_CHECK(channels >= 1, "BatchNorm2d: {} channels, expected at least 1", channels);
  weight = register_parameter("weight", initial_values({channels}, 1));
  bias = register_parameter("bias", initial_values({channels}));
  running_mean = register_buffer("running_mean", initial_values({channels}));
  running_var = register_buffer("running_var", initial_values({channels}, 1));
  register_counter("num_batches_tracked", &num_batches_tracked);
}

void BatchNorm2d::reset(const std::function<RandomStream(const std::string&)>&) {
  weight.fill_(1);
  bias.fill_(0);
  running_mean.fill_(0);
  running_var.fill_(1);
  num_batches_tracked = 0;
}

Tensor BatchNorm2d::forward(const Tensor& x) {
  CONVOY_CHECK(!residual_, "{}: needs the residual as a second input", describe());
  return normalise(x, {});
}

Tensor BatchNorm2d::forward_all(const std::vector<Tensor>& inputs) {
  CONVOY_CHECK(inputs.size() == (residual_ ? 2u : 1u), "{}: {} inputs given", describe(),
               inputs.size());
  CONVOY_CHECK(inputs.back().defined(), "{}: an input is undefined", describe());
  return normalise(inputs[0], residual_ ? inputs[1] : Tensor());
}

Tensor BatchNorm2d::normalise(const Tensor& x, const Tensor& residual) {
  BatchNormOptions options;
  options.training = is_training();
  options.mode = mode_;
  options.momentum = momentum;
  options.epsilon = epsilon;
  options.relu = relu_;
  options.update_running = update_running_;
  options.pending = mode_ == BatchNormMode::deferred ? &pending_ : nullptr;
  options.group = group_;
  const bool counts = group_ || x.numel() > 0;
  if (is_training() && update_running_ && mode_ == BatchNormMode::micro && counts) {
    ++num_batches_tracked;
  }
  return batch_norm(x, weight, bias, running_mean, running_var, options, residual);
}

void BatchNorm2d::commit() {
  if (!pending_.packed.defined()) return;
  commit_batch_norm(pending_, running_mean, running_var, momentum);
  ++num_batches_tracked;
}

std::string BatchNorm2d::describe() const {
  return fmt::format("BatchNorm2d({}){}{}", weight.size(0), residual_ ? " + add" : "",
                     relu_ ? " + ReLU" : "");
}

void set_batch_norm_mode(Module& module, BatchNormMode mode) {
  module.for_each([mode](const std::string&, Module& each) {
    if (auto* norm = dynamic_cast<BatchNorm2d*>(&each)) norm->set_mode(mode);
  });
}

void set_batch_norm_group(Module& module, Communicator* group) {
  module.for_each([group](const std::string&, Module& each) {
    if (auto* norm = dynamic_cast<BatchNorm2d*>(&each)) norm->set_group(group);
  });
}

void commit_batch_norms(Module& module) {
  module.for_each([](const std::string&, Module& each) {
    if (auto* norm = dynamic_cast<BatchNorm2d*>(&each)) norm->commit();
  });
}

}  // namespace convoy
