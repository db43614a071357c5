#include "engine/optim/optimizer.h"

#include <map>

#include "engine/ops/support.h"
#include "kernels/base/error.h"

namespace convoy {

Optimizer::Optimizer(NamedTensors parameters, double lr, std::vector<std::string> state_names)
    : parameters_(std::move(parameters)), lr_(lr), state_names_(std::move(state_names)) {
  CONVOY_CHECK(!parameters_.empty(), "optimizer: there are no parameters");
  states_.resize(state_names_.size(), std::vector<Tensor>(parameters_.size()));
}

Tensor& Optimizer::state_of(std::size_t parameter, std::size_t kind) {
  const Tensor& owner = parameters_[parameter].second;
  Tensor& state = states_[kind][parameter];
  if (!state.defined()) {
    state =
        first_update_makes_state() ? Tensor::empty_like(owner) : Tensor::zeros_like(owner.detach());
  }
  if (state.device() != owner.device()) state = state.to(owner.device());
  if (state.dtype() != owner.dtype()) state = state.to(owner.dtype());
  // Saved state comes row-major, and a parameter moves into its layout with its first forward.
  state.relayout_(owner.layout());
  return state;
}

OptimizerSlot Optimizer::slot_of(std::size_t parameter) {
  const Tensor& owner = parameters_[parameter].second;
  Tensor& gradient = owner.grad();
  gradient.relayout_(owner.layout());
  OptimizerSlot slot{.count = owner.stored_count(),
                     .weight = owner.buffer(),
                     .gradient = gradient.buffer(),
                     .state1 = {},
                     .state2 = {}};
  slot.first = !states_.empty() && !states_[0][parameter].defined();
  if (!states_.empty()) slot.state1 = state_of(parameter, 0).buffer();
  if (states_.size() > 1) slot.state2 = state_of(parameter, 1).buffer();
  configure(owner, slot);
  return slot;
}

void Optimizer::step(double gradient_scale) {
  std::map<Device, std::vector<OptimizerSlot>> slots;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& parameter = parameters_[i].second;
    if (!parameter.grad().defined()) continue;
    slots[parameter.device()].push_back(slot_of(i));
    parameter.before_write();
  }
  ++steps_;
  for (const auto& [device, of_device] : slots) {
    update(current_stream(device), of_device, gradient_scale);
  }
}

void Optimizer::zero_grad() {
  for (auto& [name, parameter] : parameters_) parameter.grad() = Tensor();
}

NamedTensors Optimizer::state_dict() const {
  NamedTensors result;
  for (std::size_t kind = 0; kind < states_.size(); ++kind) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!states_[kind][i].defined()) continue;
      result.emplace_back(state_names_[kind] + "/" + parameters_[i].first, states_[kind][i]);
    }
  }
  return result;
}

void Optimizer::load_state_dict(const NamedTensors& state, std::int64_t steps) {
  std::map<std::string, Tensor> given(state.begin(), state.end());
  for (std::size_t kind = 0; kind < states_.size(); ++kind) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const auto& [name, parameter] = parameters_[i];
      auto found = given.find(state_names_[kind] + "/" + name);
      if (found == given.end()) {
        if (steps == 0 || !parameter.requires_grad()) continue;
        CONVOY_FAIL(checkpoint, "optimizer {}: no saved {} for {}", this->name(),
                    state_names_[kind], name);
      }
      if (found->second.shape() != parameter.shape()) {
        CONVOY_FAIL(checkpoint, "optimizer {}: saved {} is {}, the parameter is {}", this->name(),
                    found->first, to_string(found->second.shape()), to_string(parameter.shape()));
      }
      states_[kind][i] = Tensor::empty(parameter.shape(), parameter.options());
      states_[kind][i].copy_(found->second);
      given.erase(found);
    }
  }
  if (!given.empty()) {
    CONVOY_FAIL(checkpoint, "optimizer {}: saved {} fits no parameter", name(),
                given.begin()->first);
  }
  steps_ = steps;
}

std::vector<double> squared_norms(const std::vector<Tensor>& tensors) {
  struct Group {
    std::vector<ConstBuffer> buffers;
    std::vector<std::int64_t> counts;
    std::vector<std::size_t> places;
  };
  std::map<Device, Group> groups;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Group& group = groups[tensors[i].device()];
    group.buffers.push_back(tensors[i].buffer());
    group.counts.push_back(tensors[i].stored_count());
    group.places.push_back(i);
  }
  std::vector<double> result(tensors.size());
  for (const auto& [device, group] : groups) {
    Tensor sums =
        Tensor::empty({static_cast<std::int64_t>(group.places.size())}, {DType::f64, device});
    context(device).kernels().sum_of_squares(current_stream(device), group.buffers, group.counts,
                                             sums.buffer());
    const std::vector<double> values = sums.to_vector<double>();
    for (std::size_t i = 0; i < values.size(); ++i) result[group.places[i]] = values[i];
  }
  return result;
}

}  // namespace convoy
