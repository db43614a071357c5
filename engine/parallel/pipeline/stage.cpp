#include "engine/parallel/pipeline/stage.h"

#include <cmath>
#include <optional>

#include "engine/autograd/grad_mode.h"
#include "engine/nn/layers.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

// The first value that is NaN or infinite; 0 if there is none.
double non_finite_value(const Tensor& x) {
  for (double value : x.to_vector<double>()) {
    if (!std::isfinite(value)) return value;
  }
  return 0;
}

// While it lives, batch norms below a module do without the other replicas.
class AloneScope {
 public:
  explicit AloneScope(Module& module) {
    module.for_each([this](const std::string&, Module& each) {
      auto* norm = dynamic_cast<BatchNorm2d*>(&each);
      if (norm && norm->group()) groups_.emplace_back(norm, norm->group());
    });
    for (auto& [norm, group] : groups_) norm->set_group(nullptr);
  }
  ~AloneScope() {
    for (auto& [norm, group] : groups_) norm->set_group(group);
  }
  AloneScope(const AloneScope&) = delete;
  AloneScope& operator=(const AloneScope&) = delete;

 private:
  std::vector<std::pair<BatchNorm2d*, Communicator*>> groups_;
};

}  // namespace

// The network's own input gets no gradient.
std::vector<Tensor> Stage::leaves_of(const std::vector<Tensor>& inputs) const {
  std::vector<Tensor> leaves;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    leaves.push_back(inputs[i].detach());
    if (slice_->inputs()[i] != Network::kInput) leaves.back().set_requires_grad();
  }
  return leaves;
}

std::vector<Tensor> Stage::run(const std::vector<Tensor>& inputs, const Finish& finish) {
  std::vector<Tensor> outputs = slice_->run(inputs);
  if (finish) return {finish(outputs.front())};
  return outputs;
}

// What backward needs of the outputs is their graph: their values go with whoever takes them.
void Stage::keep_graph(Live& live) {
  for (Tensor& output : live.outputs) {
    if (!live.finish) output = output.graph_only();
  }
}

std::vector<Tensor> Stage::forward(int k, const std::vector<Tensor>& inputs, const Finish& finish) {
  Live& live = live_[k];
  CONVOY_DCHECK(live.inputs.empty(), "stage: forward of micro-batch {} twice", k);
  live.inputs = leaves_of(inputs);
  live.finish = finish;
  std::optional<NoGradScope> no_grad;
  if (recompute_) no_grad.emplace();
  std::vector<Tensor> outputs = run(live.inputs, finish);
  if (!recompute_) {
    live.outputs = outputs;
    keep_graph(live);
  }
  for (Tensor& output : outputs) output = output.detach();
  return outputs;
}

void Stage::recompute(int k) {
  if (!recompute_) return;
  Live& live = live_.at(k);
  const NoRunningUpdates no_updates(*slice_);
  live.outputs = run(live.inputs, live.finish);
  keep_graph(live);
}

void Stage::backward(int k, const std::vector<Tensor>& gradients, bool whole) {
  Live& live = live_.at(k);
  std::vector<Tensor> roots, of_roots;
  for (std::size_t i = 0; i < live.outputs.size(); ++i) {
    const Tensor gradient = i < gradients.size() ? gradients[i] : Tensor();
    if (!live.outputs[i].requires_grad() || !(gradient.defined() || live.finish)) continue;
    roots.push_back(live.outputs[i]);
    of_roots.push_back(gradient);
  }
  live.outputs.clear();
  live.finish = nullptr;
  convoy::backward(roots, of_roots, {.postponed = whole ? nullptr : &live.weights});
  for (const Tensor& input : live.inputs) {
    Tensor gradient;
    if (input.requires_grad()) {
      gradient = input.grad().defined() ? input.grad() : Tensor::zeros_like(input.detach());
    }
    live.input_gradients.push_back(gradient);
  }
  live.inputs.clear();
}

std::vector<Tensor> Stage::take_input_gradients(int k) {
  return std::move(live_.at(k).input_gradients);
}

void Stage::backward_weights(int k) {
  live_.at(k).weights.run();
  live_.erase(k);
}

std::vector<Tensor> Stage::infer(const std::vector<Tensor>& inputs) {
  NoGradScope no_grad;
  return slice_->run(inputs);
}

std::pair<std::string, double> Stage::first_non_finite(const std::vector<Tensor>& inputs) {
  NoGradScope no_grad;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const double value = non_finite_value(inputs[i]);
    if (value == 0) continue;
    if (slice_->inputs()[i] == Network::kInput) return {"input", value};
    return {};
  }
  std::pair<std::string, double> found;
  const NoRunningUpdates no_updates(*slice_);
  const AloneScope alone(*slice_);
  slice_->run(inputs, [&](int layer, const Tensor& output) {
    const double value = non_finite_value(output);
    if (value == 0) return true;
    found = {slice_->layers()[static_cast<std::size_t>(layer - slice_->first())].name, value};
    return false;
  });
  return found;
}

}  // namespace convoy
