// Watches a network's layers from outside: what each puts out in training, as hashes, and the
// tensors that it holds. Whoever runs the network, whole or in slices, knows nothing of it.
//
//     watched(network):  the same layers, each behind a module that passes inputs and outputs on
//     a worker's thread: layer -> output -> hash, kept by device and layer in the order of running
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/nn/network.h"

namespace convoy {

class WatchedLayer;

/// Thread-safe: the workers of a process share one.
class LayerWatch {
 public:
  /// Whose outputs. A layer that is run once more for backward has a list for each of its passes.
  struct Place {
    Device device;
    int layer = 0;
    bool recorded = true;  ///< for backward, as against a forward that keeps nothing

    friend auto operator<=>(const Place&, const Place&) = default;
  };
  /// One hash of row-major bytes a forward, in order.
  using Outputs = std::map<Place, std::vector<std::uint64_t>>;

  void note(int layer, const Tensor& output);
  /// What came since the last call.
  Outputs take();

  void add(std::weak_ptr<WatchedLayer> layer);
  /// Those that still exist, of all networks.
  std::vector<std::shared_ptr<WatchedLayer>> layers() const;

 private:
  mutable std::mutex mutex_;
  Outputs outputs_;
  std::vector<std::weak_ptr<WatchedLayer>> layers_;
};

/// Has the names, values and shapes of the layer within.
class WatchedLayer : public Module {
 public:
  WatchedLayer(int number, std::string name, std::shared_ptr<Module> layer,
               std::shared_ptr<LayerWatch> watch);

  int number() const { return number_; }
  /// Within the network: "layer1.0.conv1".
  const std::string& name() const { return name_; }

  Tensor forward(const Tensor& x) override { return forward_all({x}); }
  Tensor forward_all(const std::vector<Tensor>& inputs) override;
  Shape output_shape(const std::vector<Shape>& inputs) const override {
    return layer_->output_shape(inputs);
  }
  std::int64_t multiply_adds(const std::vector<Shape>& inputs) const override {
    return layer_->multiply_adds(inputs);
  }
  std::string describe() const override { return layer_->describe(); }

 private:
  int number_;
  std::string name_;
  std::shared_ptr<Module> layer_;
  std::shared_ptr<LayerWatch> watch_;
};

/// Running values and counters of a module: what its state holds beside parameters.
NamedTensors statistics_of(const Module& module);

/// `network`'s own layers as a network that `watch` sees.
std::shared_ptr<Network> watched(const Network& network, const std::shared_ptr<LayerWatch>& watch);

}  // namespace convoy
