#include "engine/parallel/pipeline/node_cost.h"

#include <algorithm>

#include "kernels/base/error.h"

namespace convoy {
namespace {

PhaseTimes plus(const PhaseTimes& a, const PhaseTimes& b) {
  return {a.forward + b.forward, a.backward_input + b.backward_input,
          a.backward_weight + b.backward_weight};
}

PhaseTimes minus(const PhaseTimes& a, const PhaseTimes& b) {
  return {a.forward - b.forward, a.backward_input - b.backward_input,
          a.backward_weight - b.backward_weight};
}

// Parameters and kept tensors of nodes add; what only one of them holds at a time does not.
void add(StageMemory& sum, const StageMemory& node) {
  sum.parameter_bytes += node.parameter_bytes;
  sum.kept_bytes += node.kept_bytes;
  sum.weight_bytes += node.weight_bytes;
  sum.workspace_bytes = std::max(sum.workspace_bytes, node.workspace_bytes);
  sum.backward_bytes = std::max(sum.backward_bytes, node.backward_bytes);
}

}  // namespace

std::vector<double> crossing_bytes(const std::vector<NodeCost>& nodes) {
  const int count = static_cast<int>(nodes.size());
  std::vector<int> last_use(count, -1);
  for (int user = 0; user < count; ++user) {
    for (int input : nodes[user].inputs) {
      CONVOY_CHECK(input >= 0 && input < user,
                   "partition: node {} ({}) reads node {}, expected one "
                   "before it",
                   user, nodes[user].name, input);
      last_use[input] = user;
    }
  }
  std::vector<double> crossing(count, 0);
  for (int node = 0; node < count; ++node) {
    for (int cut = node; cut < last_use[node]; ++cut) crossing[cut] += nodes[node].output_bytes;
  }
  return crossing;
}

NodeSums::NodeSums(const std::vector<NodeCost>& nodes, std::int64_t images)
    : nodes_(nodes), crossing_(crossing_bytes(nodes)), images_(images) {
  CONVOY_CHECK(!nodes.empty(), "partition: the network has no nodes");
  until_.assign(nodes[0].times.size(), std::vector<PhaseTimes>(1));
  for (const NodeCost& node : nodes) {
    CONVOY_CHECK(!node.times.empty() && node.times.size() == until_.size(),
                 "partition: node {} has times for {} kinds of device, expected {}", node.name,
                 node.times.size(), std::max<std::size_t>(1, until_.size()));
    for (std::size_t device = 0; device < until_.size(); ++device) {
      until_[device].push_back(plus(until_[device].back(), node.times[device]));
    }
  }
}

PhaseTimes NodeSums::times(int first, int end, int device) const {
  return minus(until_.at(device)[end], until_[device][first]);
}

StageCost NodeSums::stage(int first, int end, int device) const {
  StageCost cost;
  cost.times = {{images_, times(first, end, device)}};
  for (int node = first; node < end; ++node) add(cost.memory, nodes_[node].memory);
  cost.memory.input_bytes = first > 0 ? crossing_[first - 1] : 0;
  cost.memory.output_bytes = crossing_[end - 1];
  return cost;
}

double NodeSums::message_bytes(int place) const {
  return place > 0 ? crossing_[place - 1] * static_cast<double>(images_) : 0;
}

}  // namespace convoy
