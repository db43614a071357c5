// What a network's parts cost on a device, measured: one by one in the order of a run, as slices of
// one node each, so that caches and layouts are those of a run.
//
//     F node 0, 1, ..., n-1, loss     then     I, W of node n-1, ..., 0
//
// A node is what a cut never parts: a layer with the batch norm and activation behind it. The
// partitioner and the planner calculate with the result.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/nn/network.h"
#include "engine/parallel/pipeline/node_cost.h"
#include "kernels/base/device.h"
#include "kernels/base/dtype.h"

namespace convoy {

/// One past the last layer of each node. A batch norm or ReLU belongs to the layer right before it
/// if it alone reads that one.
std::vector<int> node_ends(const Network& network);

struct ProfileOptions {
  Device device = {};
  DType dtype = DType::f32;
  std::int64_t images = 1;  ///< of a micro-batch
  std::int64_t image_size = 224;
  bool mse = false;          ///< the loss; else cross-entropy
  double states = 1;         ///< tensors of optimizer state a parameter has
  std::int64_t warm_up = 3;  ///< most passes before the measured ones
  std::int64_t repeats = 5;  ///< most measured passes
  double budget_s = 20;      ///< longer than that: one pass less after the other, down to 1 + 3
};

/// Costs of each node and where it ends.
struct Profile {
  std::vector<NodeCost> nodes;  ///< `inputs` are nodes; times of `images` images
  std::vector<int> ends;        ///< one past the last layer of each node
  std::int64_t images = 1;
};

/// Measures medians of F, I and W and counts bytes. Weights, gradients, statistics, layouts and the
/// device of `network` are as before afterwards. Where a pass over all nodes does not fit into the
/// device's memory, each node is measured alone. `resource` where not even that fits, `usage` for a
/// micro-batch that batch norm refuses.
Profile profile_network(Network& network, const ProfileOptions& options);

/// Profiles of one network on several kinds of device as one: `times` by kind, the most bytes.
Profile with_kinds(const std::vector<Profile>& kinds);

/// The profile for another number of images: times on the line through two measured ones (in
/// proportion where there is one). `profiles` are of the same network, one a number of images.
Profile profile_at(const std::vector<Profile>& profiles, std::int64_t images);

}  // namespace convoy
