// --cut auto: where to cut a network for a schedule, from measured costs. One process decides and
// tells the others: measurements differ.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/parallel/pipeline/partition.h"
#include "engine/parallel/pipeline/profile.h"

namespace convoy {

/// What a network is to be cut for.
struct CutRequest {
  ScheduleRequest schedule = {};
  /// Device of each worker, of the kinds that the profile has in this order; empty: all the first.
  std::vector<int> kinds = {};
  std::vector<double> caps = {};           ///< bytes of each worker; 0 or empty: no cap
  std::vector<std::int64_t> images = {1};  ///< by micro-batch id
  Link link = {};
  double host_s = 0;       ///< of each instruction
  bool recompute = false;  ///< activations are made again for backward
};

/// The task of the partitioner for these costs. Its micro-batches are those of the request, its
/// times those of the largest one.
PartitionTask cut_task(const std::vector<Profile>& profiles, const CutRequest& request);

/// Places of the cuts, one fewer than stages: the number of the first layer of each later stage.
/// `usage` for more stages than nodes, `resource` if no cut fits into the workers' memory.
std::vector<int> auto_cut(const std::vector<Profile>& profiles, const CutRequest& request);

/// The same of a network that is measured first, at the largest micro-batch of `request` on
/// `options.device`.
std::vector<int> auto_cut(Network& network, ProfileOptions options, const CutRequest& request);

/// Nodes of a partition as layers, and back. `usage` for a place inside a node.
std::vector<int> places_of(const Profile& profile, const std::vector<int>& node_ends);
std::vector<int> node_ends_of(const Profile& profile, const std::vector<int>& places);

}  // namespace convoy
