#include "engine/parallel/pipeline/profile_scope.h"

#include <set>

#include "engine/nn/layers.h"

namespace convoy {

ProfileScope::ProfileScope(Module& module, const Device& device, DType dtype)
    : module_(module),
      device_(context(device)),
      dtype_(dtype),
      trained_(module.is_training()),
      no_updates_(module),
      stream_(device_.make_stream()) {
  // Values of the module may be queued and not there yet.
  stream_->wait(current_stream(device).record());
  on_stream_ = std::make_unique<StreamScope>(*stream_);
  for (const NamedTensors& tensors : {module.named_parameters(), module.named_buffers()}) {
    for (const auto& [name, tensor] : tensors) {
      homes_.push_back({tensor, std::exchange(tensor.grad(), {}), tensor.detach()});
    }
  }
  module.for_each([this](const std::string&, Module& each) {
    auto* norm = dynamic_cast<BatchNorm2d*>(&each);
    if (!norm) return;
    groups_.emplace_back(norm, norm->group());
    norm->set_group(nullptr);  // nobody else runs along
  });
  module.train();
}

ProfileScope::~ProfileScope() {
  leave(module_);
  for (Home& home : homes_) home.tensor.grad() = home.gradient;
  for (auto& [norm, group] : groups_) norm->set_group(group);
  module_.train(trained_);
  on_stream_.reset();
}

void ProfileScope::enter(Module& module) {
  module.to(parameter_type(dtype_));
  module.to(device_.device());
}

void ProfileScope::leave(Module& module) {
  std::set<Tensor::Impl*> here;
  for (const NamedTensors& tensors : {module.named_parameters(), module.named_buffers()}) {
    for (const auto& [name, tensor] : tensors) here.insert(tensor.impl().get());
  }
  for (Home& home : homes_) {
    Tensor::Impl& impl = *home.tensor.impl();
    if (!here.contains(&impl)) continue;
    const Tensor::Impl& values = *home.values.impl();
    impl.grad = Tensor();
    impl.storage = values.storage;
    impl.offset = values.offset;
    impl.dtype = values.dtype;
    impl.layout = values.layout;
  }
}

double ProfileScope::close_stream() {
  stream_->synchronize();
  on_stream_.reset();
  const std::size_t before = device_.memory().statistics().in_use;
  stream_.reset();
  return static_cast<double>(before - device_.memory().statistics().in_use);
}

}  // namespace convoy
