#include "engine/nn/module.h"

#include <algorithm>
#include <map>

#include "engine/autograd/grad_mode.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

std::string join(const std::string& prefix, const std::string& name) {
  if (prefix.empty() || name.empty()) return prefix + name;
  return prefix + "." + name;
}

std::string first_five(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 5); ++i) {
    text += (i ? ", " : "") + names[i];
  }
  return text + (names.size() > 5 ? ", ..." : "");
}

thread_local bool draws_values = true;
thread_local bool keeps_values = true;

// Swaps the values behind every handle of the tensor.
void replace_values(const Tensor& tensor, const Tensor& values) {
  tensor.impl()->storage = values.storage();
  tensor.impl()->offset = values.impl()->offset;
  tensor.impl()->dtype = values.dtype();
  tensor.impl()->layout = values.layout();
  tensor.impl()->grad = Tensor();
}

void drop_values_in_scope(const Tensor& tensor) {
  if (keeps_values || !tensor.is_allocated()) return;
  replace_values(tensor, Tensor::without_values(tensor.shape(), tensor.options()));
}

}  // namespace

NoValuesScope::NoValuesScope() : outer_(std::exchange(keeps_values, false)) {}

NoValuesScope::~NoValuesScope() {
  keeps_values = outer_;
}

Tensor initial_values(const Shape& shape, double value) {
  return keeps_values ? Tensor::full(shape, value) : Tensor::without_values(shape);
}

NoInitializationScope::NoInitializationScope() : outer_(std::exchange(draws_values, false)) {}

NoInitializationScope::~NoInitializationScope() {
  draws_values = outer_;
}

Tensor Module::forward(const Tensor&) {
  CONVOY_FAIL(usage, "{}: takes more than one input: call forward_all", describe());
}

Tensor Module::forward_all(const std::vector<Tensor>& inputs) {
  CONVOY_CHECK(inputs.size() == 1, "{}: {} inputs given, expected 1", describe(), inputs.size());
  return forward(inputs[0]);
}

Tensor Module::register_parameter(const std::string& name, Tensor value) {
  value.set_requires_grad();
  drop_values_in_scope(value);
  parameters_.emplace_back(name, value);
  return value;
}

Tensor Module::register_buffer(const std::string& name, Tensor value) {
  drop_values_in_scope(value);
  buffers_.emplace_back(name, value);
  return value;
}

void Module::register_counter(const std::string& name, std::int64_t* value) {
  counters_.emplace_back(name, value);
}

void Module::add_child(const std::string& name, std::shared_ptr<Module> module) {
  const bool taken = std::any_of(children_.begin(), children_.end(),
                                 [&](const auto& child) { return child.first == name; });
  CONVOY_CHECK(!taken, "module: there is a child named '{}' already", name);
  children_.emplace_back(name, std::move(module));
}

void Module::collect(const std::string& prefix, NamedTensors Module::*own,
                     NamedTensors& out) const {
  for (const auto& [name, tensor] : this->*own) out.emplace_back(join(prefix, name), tensor);
  for (const auto& [name, child] : children_) child->collect(join(prefix, name), own, out);
}

NamedTensors Module::named_parameters() const {
  NamedTensors result;
  collect("", &Module::parameters_, result);
  return result;
}

NamedTensors Module::named_buffers() const {
  NamedTensors result;
  collect("", &Module::buffers_, result);
  return result;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> result;
  for (auto& [name, tensor] : named_parameters()) result.push_back(tensor);
  return result;
}

std::int64_t Module::parameter_count() const {
  std::int64_t count = 0;
  for (const Tensor& parameter : parameters()) count += parameter.numel();
  return count;
}

void Module::collect_counters(const std::string& prefix,
                              std::vector<std::pair<std::string, std::int64_t*>>& out) const {
  for (const auto& [name, value] : counters_) out.emplace_back(join(prefix, name), value);
  for (const auto& [name, child] : children_) child->collect_counters(join(prefix, name), out);
}

std::vector<std::pair<std::string, std::int64_t*>> Module::named_counters() const {
  std::vector<std::pair<std::string, std::int64_t*>> result;
  collect_counters("", result);
  return result;
}

void Module::collect_state(const std::string& prefix, NamedTensors& out) const {
  for (const auto& [name, tensor] : parameters_) out.emplace_back(join(prefix, name), tensor);
  for (const auto& [name, tensor] : buffers_) out.emplace_back(join(prefix, name), tensor);
  for (const auto& [name, value] : counters_) {
    out.emplace_back(join(prefix, name), Tensor::from<std::int64_t>({*value}, {}));
  }
  for (const auto& [name, child] : children_) child->collect_state(join(prefix, name), out);
}

NamedTensors Module::state_dict() const {
  NamedTensors result;
  collect_state("", result);
  return result;
}

void Module::load_state_dict(const NamedTensors& state, bool strict) {
  std::map<std::string, Tensor> given(state.begin(), state.end());
  NamedTensors wanted = named_parameters();
  for (auto& entry : named_buffers()) wanted.push_back(entry);
  std::vector<std::string> missing;
  for (auto& [name, tensor] : wanted) {
    auto found = given.find(name);
    if (found == given.end()) {
      missing.push_back(name);
      continue;
    }
    if (found->second.shape() != tensor.shape()) {
      CONVOY_FAIL(checkpoint, "load_state_dict: {} has shape {}, the module's is {}", name,
                  to_string(found->second.shape()), to_string(tensor.shape()));
    }
  }
  const auto counters = named_counters();
  std::map<std::string, Tensor> rest = given;
  for (auto& [name, tensor] : wanted) rest.erase(name);
  for (auto& [name, value] : counters) rest.erase(name);
  std::vector<std::string> unexpected;
  for (auto& [name, tensor] : rest) unexpected.push_back(name);
  if (strict && !(missing.empty() && unexpected.empty())) {
    CONVOY_FAIL(checkpoint, "load_state_dict: {} missing ({}), {} unexpected ({})", missing.size(),
                first_five(missing), unexpected.size(), first_five(unexpected));
  }
  for (auto& [name, tensor] : wanted) {
    if (auto found = given.find(name); found != given.end()) tensor.copy_(found->second);
  }
  for (auto& [name, value] : counters) {
    if (auto found = given.find(name); found != given.end()) {
      *value = static_cast<std::int64_t>(found->second.item());
    }
  }
}

void Module::train(bool on) {
  training_ = on;
  for (auto& [name, child] : children_) child->train(on);
}

void Module::zero_grad() {
  for (const Tensor& parameter : parameters()) parameter.grad() = Tensor();
}

void Module::to(const Device& device) {
  NoGradScope no_grad;
  for (auto& [name, tensor] : state_dict()) {
    if (is_floating(tensor.dtype())) replace_values(tensor, tensor.to(device));
  }
}

void Module::to(DType dtype) {
  NoGradScope no_grad;
  for (auto& [name, tensor] : state_dict()) {
    if (is_floating(tensor.dtype())) replace_values(tensor, tensor.to(dtype));
  }
}

void Module::initialize(std::uint64_t seed, const std::string& prefix) {
  NoGradScope no_grad;
  reset([&](const std::string& name) { return RandomStream(seed, join(prefix, name)); });
  for (auto& [name, child] : children_) child->initialize(seed, join(prefix, name));
}

void Module::materialize(const Device& device, DType dtype, std::uint64_t seed,
                         const std::string& prefix) {
  NoGradScope no_grad;
  materialize_own(device, dtype, seed, prefix);
  for (auto& [name, child] : children_) child->materialize(device, dtype, seed, join(prefix, name));
}

// One module at a time, so that no more than its own values lie there twice while they change type.
void Module::materialize_own(const Device& device, DType dtype, std::uint64_t seed,
                             const std::string& prefix) {
  std::vector<Tensor> made;
  for (const NamedTensors* own : {&parameters_, &buffers_}) {
    for (const auto& [name, tensor] : *own) {
      if (tensor.is_allocated()) continue;
      replace_values(tensor, Tensor::zeros(tensor.shape(), {tensor.dtype(), device}));
      made.push_back(tensor);
    }
  }
  if (made.empty()) return;
  reset([&](const std::string& name) { return RandomStream(seed, join(prefix, name)); });
  for (const Tensor& tensor : made) {
    if (is_floating(tensor.dtype())) replace_values(tensor, tensor.to(dtype));
  }
}

bool Module::is_materialized() const {
  for (const NamedTensors& each : {named_parameters(), named_buffers()}) {
    for (const auto& [name, tensor] : each) {
      if (!tensor.is_allocated()) return false;
    }
  }
  return true;
}

void Module::reset_with_manual_seed() {
  if (!draws_values || !keeps_values) return;
  NoGradScope no_grad;
  reset([](const std::string&) { return next_random_stream(); });
}

void Module::for_each(const std::function<void(const std::string& name, Module&)>& visit) {
  visit("", *this);
  for (auto& [name, child] : children_) {
    child->for_each([&, &name = name](const std::string& below, Module& module) {
      visit(below.empty() ? name : join(name, below), module);
    });
  }
}

}  // namespace convoy
