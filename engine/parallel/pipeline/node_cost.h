// A network as the partitioner sees it: nodes in the order in which they run (a convolution with
// its norm and activation is one), each with measured times, memory and the nodes that it reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/parallel/pipeline/stage_cost.h"

namespace convoy {

struct NodeCost {
  std::string name;
  std::vector<PhaseTimes> times;  ///< of one micro-batch, by kind of device
  StageMemory memory = {};        ///< without messages, which depend on the cuts
  double output_bytes = 0;        ///< of an image
  std::vector<int> inputs = {};   ///< nodes before this one; none: the network's input
  double gradient_bytes = 0;      ///< of its parameters, summed over replicas
};

/// X(j), bytes of an image that cross a cut after node j: all that was made up to j and is used
/// later. A tensor that crosses several cuts counts in each: it is relayed. `usage` for an input
/// that does not stand before its node.
std::vector<double> crossing_bytes(const std::vector<NodeCost>& nodes);

/// Costs of any run of nodes, from sums made once.
class NodeSums {
 public:
  /// `images`: of the micro-batch whose times were measured. `usage` for nodes without times.
  NodeSums(const std::vector<NodeCost>& nodes, std::int64_t images);

  int nodes() const { return static_cast<int>(nodes_.size()); }
  /// Times of nodes `first` to `end` - 1 on a device of a kind.
  PhaseTimes times(int first, int end, int device) const;
  /// The same nodes as a stage, with what crosses its two ends.
  StageCost stage(int first, int end, int device) const;
  /// Bytes of a micro-batch across a cut before node `place`; none at the ends of the network.
  double message_bytes(int place) const;

 private:
  std::vector<NodeCost> nodes_;
  std::vector<double> crossing_;
  std::vector<std::vector<PhaseTimes>> until_;  // by device: sums of the nodes before each place
  std::int64_t images_;
};

}  // namespace convoy
