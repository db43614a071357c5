// Where to cut a network into stages: an exact dynamic program over its nodes, with the objective
// of the schedule, and a simulation of the best candidates.
//
//     best(q, j) = min over i of max(best(q-1, i), cost(q, i, j))        1f1b, zb-h1
//
// cost(q, i, j): F + I + W of nodes i to j-1 on the device of stage q, at least either transfer;
// infinite where they do not fit into its memory. Fill-drain adds the slowest F and the slowest
// backward, so it keeps every pair of the two that no other pair beats in both.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/parallel/pipeline/node_cost.h"
#include "engine/parallel/pipeline/schedules.h"
#include "engine/parallel/pipeline/simulate.h"

namespace convoy {

/// What is to be cut, for which schedule, on which workers.
struct PartitionTask {
  std::vector<NodeCost> nodes;
  ScheduleRequest schedule = {};
  std::vector<int> devices = {};           ///< kind of each worker's device; empty: all 0
  std::vector<double> caps = {};           ///< bytes of each worker; 0 or empty: no cap
  std::vector<std::int64_t> images = {1};  ///< by micro-batch id; times are of the largest
  Link link = {};
  double host_s = 0;
  int slots = 2;
  int candidates = 20;  ///< cuts that are simulated
  bool recompute = false;
  /// Adds what nodes `first` to `end` - 1 on a device of a kind cost beside their times: optimizer
  /// and all-reduce, which take time and memory. The cuts are chosen without those seconds.
  std::function<void(int first, int end, int device, StageCost& cost)> add_window_end = {};
};

struct Partition {
  std::vector<int> ends;         ///< one past the last node of each stage
  double objective_s = 0;        ///< of the window, what was minimised; the simulation may beat it
  std::vector<StageCost> costs;  ///< of the stages
  Timeline timeline;             ///< simulated
};

/// The best cuts by the objective, up to `candidates`, without simulation, best first. None:
/// nothing fits into memory. For `interleaved` the objective is that of 1f1b over all its stages
/// and memory is not looked at. `usage` for more stages than nodes.
std::vector<Partition> best_cuts(const PartitionTask& task);

/// The candidate whose simulation is fastest. `resource` if no cut fits into the workers' memory.
Partition choose_partition(const PartitionTask& task);

/// Costs and simulation of given cuts. `usage` for cuts that leave a stage empty or nodes out,
/// `resource` for a worker that needs more than its cap.
Partition simulate_cuts(const PartitionTask& task, const std::vector<int>& ends);

}  // namespace convoy
