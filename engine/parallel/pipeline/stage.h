// The computation of one stage, micro-batch by micro-batch: forward, backward in two halves, and
// what stays in between. It knows no links, no loss and no optimizer.
//
//     forward(k): inputs -> outputs    keeps the graph (or, to recompute, the inputs alone)
//     backward(k): gradients of the outputs -> gradients of the inputs; weights now or later
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/autograd/backward.h"
#include "engine/nn/slice.h"

namespace convoy {

/// Used by the thread of its worker. Micro-batches go by their ids.
class Stage {
 public:
  /// What follows the slice within the stage: the loss.
  using Finish = std::function<Tensor(const Tensor& output)>;

  /// `recompute`: forward keeps its inputs alone and runs once more in backward.
  Stage(std::shared_ptr<NetworkSlice> slice, bool recompute)
      : slice_(std::move(slice)), recompute_(recompute) {}

  NetworkSlice& slice() { return *slice_; }
  const std::shared_ptr<NetworkSlice>& shared_slice() const { return slice_; }
  bool recomputes() const { return recompute_; }

  /// Outputs of the slice for its inputs, without their graph; with `finish` its result alone. The
  /// values of outputs are not kept: they are freed when the caller has no use for them any more.
  std::vector<Tensor> forward(int k, const std::vector<Tensor>& inputs,
                              const Finish& finish = nullptr);
  /// Runs forward again, where it is to; running statistics stay as they are.
  void recompute(int k);
  /// Backward of the micro-batch: `gradients` of the outputs, undefined where nothing flows back;
  /// none for a loss. `whole`: weights too, else they wait for backward_weights().
  void backward(int k, const std::vector<Tensor>& gradients, bool whole);
  /// Of the inputs, undefined where nothing flows back; once, after backward.
  std::vector<Tensor> take_input_gradients(int k);
  /// Adds the gradients of the weights that backward has left; then nothing of it is left.
  void backward_weights(int k);

  /// Forward with running statistics, keeping nothing.
  std::vector<Tensor> infer(const std::vector<Tensor>& inputs);
  /// The first layer whose output for `inputs` is not finite, and that value; an empty name where
  /// all are finite. The inputs count where they are the network's ("input"), else bad ones are
  /// another stage's. Uses this worker's own batch statistics.
  std::pair<std::string, double> first_non_finite(const std::vector<Tensor>& inputs);
  /// Of micro-batch k, until its backward.
  const std::vector<Tensor>& inputs(int k) const { return live_.at(k).inputs; }

  /// Drops what an abandoned window has left.
  void clear() { live_.clear(); }

 private:
  struct Live {
    std::vector<Tensor> inputs;
    std::vector<Tensor> outputs;
    std::vector<Tensor> input_gradients;
    PostponedWeights weights;
    Finish finish;
  };
  static void keep_graph(Live& live);
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, const Finish& finish);
  std::vector<Tensor> leaves_of(const std::vector<Tensor>& inputs) const;

  std::shared_ptr<NetworkSlice> slice_;
  const bool recompute_;
  std::map<int, Live> live_;
};

}  // namespace convoy
