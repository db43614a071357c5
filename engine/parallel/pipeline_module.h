// Pipelining in one process in one line: Pipeline model(network, {"layer3"}, devices). Every device
// has a part of the layers, every batch goes through them in micro-batches, and all devices work at
// the same time: the host only queues the work, in the order in which it can begin.
//
//     wave      0        1        2        3        4
//     cpu:0   stage 0  stage 0  stage 0  stage 0              of micro-batch 0, 1, 2, 3
//     cpu:1            stage 1  stage 1  stage 1  stage 1 -> cat -> output on cpu:1
//
// Backward runs the same picture from right to left.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/nn/layers.h"
#include "engine/nn/network.h"
#include "engine/nn/slice.h"

namespace convoy {

/// Where a network is cut: before the first layer of that name or below it ("layer3"), or before
/// the layer of that number.
class Cut {
 public:
  Cut(std::string name) : name_(std::move(name)) {}
  Cut(const char* name) : name_(name) {}
  Cut(int place) : place_(place) {}

  /// The number of the layer after the cut. `usage` for a name that `network` does not know.
  int place_in(const Network& network) const;

 private:
  std::string name_;  // empty: by number
  int place_ = 0;
};

struct PipelineOptions {
  /// Images of a micro-batch; the last one of a batch may have fewer.
  std::int64_t micro_batch = 20;
  /// For networks made without values: what the stages' initial values are drawn from.
  std::uint64_t seed = 0;
};

/// A network whose stages lie on several devices, with the network's own names. Outputs, gradients
/// and running statistics are, to the last bit, those of a loop on one device over the same
/// micro-batches, whose outputs are joined; batch norms normalise over a micro-batch. Used by one
/// thread.
class Pipeline : public Module {
 public:
  /// Cuts `network` into cuts.size() + 1 stages, stage i for devices[i], and moves the values
  /// there; a stage without values is materialized there and nowhere else. `usage` for cuts that do
  /// not ascend or leave a stage empty, for devices that are not one a stage, and for a value that
  /// two stages own.
  Pipeline(std::shared_ptr<Network> network, const std::vector<Cut>& cuts,
           std::vector<Device> devices, PipelineOptions options = {});
  /// The children are the layers: cuts by their names, "0", "1", ... or as given.
  Pipeline(const std::shared_ptr<Sequential>& layers, const std::vector<Cut>& cuts,
           std::vector<Device> devices, PipelineOptions options = {});

  /// x: a batch on any device. The output is on the last one, its rows in the order of the images.
  Tensor forward(const Tensor& x) override;
  /// `usage`: each stage stays on its device.
  void to(const Device& device) override;
  using Module::to;

  const std::shared_ptr<Network>& network() const { return network_; }
  const std::vector<Device>& devices() const { return devices_; }
  /// One for each device; their layers are the network's.
  const std::vector<std::unique_ptr<NetworkSlice>>& stages() const { return stages_; }
  std::string describe() const override { return "Pipeline(" + network_->describe() + ")"; }

 private:
  void place_stages();
  void check_placement() const;
  void run_stage(std::size_t stage, std::vector<Tensor>& values) const;

  std::shared_ptr<Network> network_;
  std::vector<Device> devices_;
  PipelineOptions options_;
  std::vector<std::unique_ptr<NetworkSlice>> stages_;
};

}  // namespace convoy
