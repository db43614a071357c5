// A network as a list of layers in the order of their running, each with the layers that it reads.
// It may be cut between any two of them: what crosses a cut is what was made before and is read
// after.
//
//     -1 input -> 0 conv1 -> 1 bn1 -> 2 maxpool -> 3 layer1.0.conv1 -> ... -> bn3(conv3,
//     downsample)
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/nn/module.h"

namespace convoy {

class Network : public Module {
 public:
  /// The network's input as a layer number.
  static constexpr int kInput = -1;

  struct Layer {
    std::string name;  ///< prefix of its parameters: "layer1.0.conv1"
    std::shared_ptr<Module> module;
    std::vector<int> inputs;  ///< numbers of earlier layers, or kInput
  };

  /// `rows`: the input is (N, in) rows of numbers, else images (N, in, H, W).
  Network(std::string name, std::int64_t in, bool rows, std::int64_t out);

  /// Appends a layer and returns its number. Inputs left out: the layer before.
  int add(const std::string& name, std::shared_ptr<Module> module, std::vector<int> inputs = {});

  /// Output of the last layer.
  Tensor forward(const Tensor& x) override;
  /// Shapes of all layers' outputs for `images` inputs of `image_size`, without running anything.
  std::vector<Shape> output_shapes(std::int64_t images, std::int64_t image_size) const;
  /// The shapes that layer `number` reads, out of those that output_shapes() gave.
  std::vector<Shape> input_shapes(std::size_t number, const std::vector<Shape>& outputs,
                                  std::int64_t images, std::int64_t image_size) const;
  /// The name of the first layer whose output for `x` holds a value that is not finite, and that
  /// value; empty if all are finite. Changes no running statistics.
  std::pair<std::string, double> first_non_finite(const Tensor& x);

  const std::string& name() const { return name_; }
  const std::vector<Layer>& layers() const { return layers_; }
  std::int64_t in() const { return in_; }
  std::int64_t out() const { return out_; }
  bool takes_rows() const { return rows_; }
  std::string describe() const override { return name_; }

 private:
  template <class Visit>
  Tensor run(const Tensor& x, Visit&& visit);

  std::string name_;
  std::int64_t in_;
  bool rows_;
  std::int64_t out_;
  std::vector<Layer> layers_;
  std::vector<int> last_reader_;  // of each layer's output
};

}  // namespace convoy
