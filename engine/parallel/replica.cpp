#include "engine/parallel/replica.h"

#include <set>
#include <utility>

#include "engine/nn/layers.h"

namespace convoy {
namespace {

// What makes a handle show one value rather than another.
void swap_values(Tensor::Impl& a, Tensor::Impl& b) {
  std::swap(a.storage, b.storage);
  std::swap(a.offset, b.offset);
  std::swap(a.layout, b.layout);
  std::swap(a.node, b.node);
}

// Batch norms whose running statistics are to stay.
std::vector<BatchNorm2d*> updating_norms(Module& module) {
  std::vector<BatchNorm2d*> norms;
  module.for_each([&](const std::string&, Module& each) {
    auto* norm = dynamic_cast<BatchNorm2d*>(&each);
    if (norm && norm->updates_running()) norms.push_back(norm);
  });
  return norms;
}

}  // namespace

// While it lives, the module is the replica.
class Replica::Guise {
 public:
  explicit Guise(Replica& replica) : replica_(replica), norms_(updating_norms(replica.module_)) {
    for (const auto& [name, counter] : replica_.module_.named_counters()) {
      counters_.emplace_back(counter, *counter);
    }
    for (BatchNorm2d* norm : norms_) norm->set_update_running(false);
    swap();
  }
  ~Guise() {
    swap();
    for (BatchNorm2d* norm : norms_) norm->set_update_running(true);
    for (const auto& [counter, value] : counters_) *counter = value;
  }
  Guise(const Guise&) = delete;
  Guise& operator=(const Guise&) = delete;

 private:
  void swap() {
    for (Value& value : replica_.values_) swap_values(*value.of.impl(), *value.here.impl());
  }

  Replica& replica_;
  std::vector<BatchNorm2d*> norms_;
  std::vector<std::pair<std::int64_t*, std::int64_t>> counters_;
};

Replica::Replica(Module& module, const Device& device) : module_(module) {
  NamedTensors all = module.named_parameters();
  for (auto& entry : module.named_buffers()) all.push_back(std::move(entry));
  std::set<const Tensor::Impl*> known;  // a tensor may go by two names
  for (const auto& [name, tensor] : all) {
    if (known.insert(tensor.impl().get()).second) values_.push_back({tensor, tensor.to(device)});
  }
}

Tensor Replica::forward(const std::vector<Tensor>& inputs) {
  const Guise guise(*this);
  return module_.forward_all(inputs);
}

}  // namespace convoy
