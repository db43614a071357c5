#include "engine/train/layer_watch.h"

#include <set>
#include <utility>

#include "engine/autograd/grad_mode.h"
#include "engine/io/hash.h"

namespace convoy {

void LayerWatch::note(int layer, const Tensor& output) {
  if (output.numel() == 0) return;  // a replica that only joins the others' statistics
  const Place place = {output.device(), layer, grad_enabled()};
  const NoGradScope no_grad;
  const std::uint64_t hash = hash64(output.detach().to_bytes());
  const std::lock_guard lock(mutex_);
  outputs_[place].push_back(hash);
}

LayerWatch::Outputs LayerWatch::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(outputs_, {});
}

void LayerWatch::add(std::weak_ptr<WatchedLayer> layer) {
  const std::lock_guard lock(mutex_);
  layers_.push_back(std::move(layer));
}

std::vector<std::shared_ptr<WatchedLayer>> LayerWatch::layers() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<WatchedLayer>> alive;
  for (const auto& layer : layers_) {
    if (auto held = layer.lock()) alive.push_back(std::move(held));
  }
  return alive;
}

WatchedLayer::WatchedLayer(int number, std::string name, std::shared_ptr<Module> layer,
                           std::shared_ptr<LayerWatch> watch)
    : number_(number),
      name_(std::move(name)),
      layer_(register_module("", std::move(layer))),
      watch_(std::move(watch)) {}

Tensor WatchedLayer::forward_all(const std::vector<Tensor>& inputs) {
  Tensor output = layer_->forward_all(inputs);
  if (is_training()) watch_->note(number_, output);
  return output;
}

NamedTensors statistics_of(const Module& module) {
  std::set<std::string> parameters;
  for (const auto& [name, tensor] : module.named_parameters()) parameters.insert(name);
  NamedTensors state = module.state_dict();
  std::erase_if(state, [&](const auto& entry) { return parameters.contains(entry.first); });
  return state;
}

std::shared_ptr<Network> watched(const Network& network, const std::shared_ptr<LayerWatch>& watch) {
  auto seen =
      std::make_shared<Network>(network.name(), network.in(), network.takes_rows(), network.out());
  int number = 0;
  for (const Network::Layer& layer : network.layers()) {
    auto module = std::make_shared<WatchedLayer>(number++, layer.name, layer.module, watch);
    seen->add(layer.name, module, layer.inputs);
    watch->add(module);
  }
  return seen;
}

}  // namespace convoy
