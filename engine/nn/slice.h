// A contiguous part of a network: what a stage of a pipeline owns. What crosses its two ends are
// the outputs of earlier layers that are read later: one tensor, inside a residual block two.
//
//     place 0        a cut before layer `place`        layers().size()
//       | conv1 bn1 ... layer2.3.bn3 | layer3.0.conv1 ... fc |
//         NetworkSlice(network, 0, p)  NetworkSlice(network, p, n)
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/nn/network.h"

namespace convoy {

class BatchNorm2d;

/// The layers (or Network::kInput) whose outputs are made before layer `place` and read by it or a
/// later one, ascending: what crosses a cut there. At 0 the network's input, at the end its output.
std::vector<int> crossing(const Network& network, int place);

/// The place of a cut by name: the number of the first layer that is called `name` or lies below it
/// ("layer3": layer3.0.conv1). `usage` for an unknown name, with those at the top.
int find_cut(const Network& network, const std::string& name);

/// Names for cuts: the shortest that find_cut takes to the same place ("layer3", not
/// "layer3.0.conv1").
std::string cut_name(const Network& network, int place);

/// Layers [first, end) of a network with their own names: parameters, state and modes are those of
/// the network's layers. The network may be dropped; other layers then go with it.
class NetworkSlice : public Module {
 public:
  /// Told each layer's number and output; false ends the run.
  using Visit = std::function<bool(int layer, const Tensor& output)>;

  /// `internal` for layers that are not there.
  NetworkSlice(const Network& network, int first, int end);

  int first() const { return first_; }
  int end() const { return first_ + static_cast<int>(layers_.size()); }
  const std::vector<Network::Layer>& layers() const { return layers_; }
  /// What it takes and gives: layer numbers, see crossing().
  const std::vector<int>& inputs() const { return inputs_; }
  const std::vector<int>& outputs() const { return outputs_; }

  /// Tensors of outputs() for those of inputs(). What passes through is given as it came.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, const Visit& visit = nullptr);
  /// For slices with one input and one output.
  Tensor forward(const Tensor& x) override;
  /// Shapes of inputs() for `images` images, given the outputs of all layers of the network
  /// (Network::output_shapes).
  std::vector<Shape> input_shapes(const Shape& network_input,
                                  const std::vector<Shape>& all_outputs) const;
  std::string describe() const override;

 private:
  std::size_t value_of(int layer) const;

  int first_;
  std::vector<Network::Layer> layers_;
  std::vector<int> inputs_;
  std::vector<int> outputs_;
  std::vector<int> last_reader_;  // of inputs, then of layers; outputs are never freed
};

/// While it lives, no batch norm below `module` changes its running statistics: for forwards that
/// run once more.
class NoRunningUpdates {
 public:
  explicit NoRunningUpdates(Module& module);
  ~NoRunningUpdates();
  NoRunningUpdates(const NoRunningUpdates&) = delete;
  NoRunningUpdates& operator=(const NoRunningUpdates&) = delete;

 private:
  std::vector<BatchNorm2d*> switched_off_;
};

}  // namespace convoy
