// One node of a network under measurement: its F, I and W on the clock, its bytes from what the
// device's memory pool holds before and after.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "engine/autograd/backward.h"
#include "engine/nn/slice.h"
#include "engine/parallel/pipeline/stage_cost.h"
#include "kernels/base/context.h"

namespace convoy {

using LossOf = std::function<Tensor(const Tensor& output)>;

/// Seconds until `work` and what it has queued on `stream` are done.
double seconds_of(Stream& stream, const std::function<void()>& work);

/// What a pass knows of the values that cross from node to node.
struct ProfileValues {
  std::map<int, Tensor> leaves;  ///< by layer: outputs, cut off from what made them
  std::set<int> kept;            ///< those that some node keeps for backward: counted once
};

class MeasuredNode {
 public:
  MeasuredNode(const Network& network, int first, int end, DeviceContext& device, Stream& stream);

  NetworkSlice& slice() { return slice_; }
  /// Layers of other nodes that it reads.
  const std::set<int>& reads() const { return reads_; }
  /// Of the last pass: bytes of all images.
  const StageMemory& memory() const { return memory_; }
  double output_bytes() const { return output_bytes_; }
  const std::vector<PhaseTimes>& passes() const { return passes_; }

  /// F of a new pass. `loss` where it is the network's last node: that ends in a scalar.
  void forward(ProfileValues& values, const LossOf& loss);
  /// I, then W. The gradient of its output lies in the output's leaf, which goes.
  void backward(ProfileValues& values);

 private:
  double in_use();
  double peak() const;
  void run(ProfileValues& values, const LossOf& loss);
  void note_kept(ProfileValues& values, const std::map<int, long>& users, double more);
  void run_back(PostponedWeights& weights, Tensor dy);
  void run_weights(PostponedWeights& weights, ProfileValues& values);

  NetworkSlice slice_;
  DeviceContext& device_;
  Stream& stream_;
  std::set<int> reads_;
  std::set<int> keeps_;  // of these, what its graph keeps and no earlier one has
  Tensor root_;
  double output_bytes_ = 0;
  StageMemory memory_;
  std::vector<PhaseTimes> passes_;
};

}  // namespace convoy
