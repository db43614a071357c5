// Which layout trains a network fastest, on paper: one device, data parallel, pipeline or both,
// each with its schedules and micro-batch sizes, cut, simulated and weighed against the workers'
// memory.
//
//     workers = replicas x stages        seconds = simulated schedule + all-reduce that nothing
//     hides
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/parallel/pipeline/all_reduce_cost.h"
#include "engine/parallel/pipeline/node_cost.h"
#include "engine/parallel/pipeline/partition.h"

namespace convoy {

/// Workers and what joins them, measured or described. Rank r is worker r % stages of replica
/// r / stages.
struct PlanMachine {
  int workers = 1;
  int per_node = 0;                          ///< workers of a node; 0: all are on one
  std::vector<int> kinds = {};               ///< of each worker's device; empty: all 0
  std::optional<int> single_kind = {};       ///< of a worker while all others rest
  std::vector<double> caps = {};             ///< bytes, by kind; 0 or empty: no cap
  Link inside = {};                          ///< between two workers of a node
  Link between = {};                         ///< of a node to others, shared by its workers
  std::optional<Link> reduce_inside = {};    ///< where all-reduces reach another rate
  bool reduce_overlaps = true;               ///< all-reduces do not take from computing
  std::vector<double> step_s_per_byte = {};  ///< optimizer, by kind, per byte of parameters
  double host_s = 0;                         ///< of each instruction
};

/// What is to be planned; what is given narrows the candidates.
struct PlanTask {
  /// Nodes with times of a micro-batch of so many images, for each kind of device.
  std::function<std::vector<NodeCost>(std::int64_t images)> nodes_at;
  PlanMachine machine = {};
  std::int64_t batch = 1;  ///< images of a step, of all replicas
  std::int64_t accumulate = 1;
  std::int64_t least_images = 1;  ///< that batch norm takes in a micro-batch
  std::optional<int> replicas = {};
  std::optional<int> stages = {};  ///< workers of a replica
  std::optional<std::string> schedule = {};
  int stages_per_worker = 2;  ///< of `interleaved`
  std::optional<std::int64_t> micro_batch_size = {};
  bool recompute = false;           ///< always; else where memory asks for it
  std::vector<int> node_ends = {};  ///< a cut given by hand
};

/// A way to train.
struct PlanCandidate {
  std::string layout;  ///< single, data-parallel, pipeline, both
  int replicas = 1;
  int stages = 1;  ///< workers of a replica
  int stages_per_worker = 1;
  std::string schedule = "1f1b";
  std::vector<int> warm_up = {};  ///< of 1f1b, where its own is not the best
  std::int64_t micro_batch_size = 1;
  int micro_batches = 1;
  bool recompute = false;
  std::vector<int> node_ends = {};  ///< one past the last node of each stage
  double seconds = 0;               ///< of a step
  double images_per_s = 0;
  double bubble = 0;                ///< share of workers' time without input, room to send or work
  double all_reduce = 0;            ///< share of workers' time in all-reduces that nothing hides
  std::vector<double> memory = {};  ///< most bytes of each worker of a replica
  std::string dropped;              ///< why not; empty: it can be run
};

/// Micro-batch sizes of all candidates, ascending: what nodes_at() will be asked for.
std::vector<std::int64_t> sizes_of(const PlanTask& task);

/// All candidates: those that can be run, fastest first, then those that cannot. `usage` where what
/// is given leaves none to look at.
std::vector<PlanCandidate> plan_layouts(const PlanTask& task);

/// Share of a step by which forecasts may be wrong.
inline constexpr double kForecastMargin = 0.03;

/// The fastest; data parallel or one device unless another is faster by more than `margin` of its
/// time. `resource` where none can be run, with the first reason.
const PlanCandidate& recommended(const std::vector<PlanCandidate>& candidates,
                                 double margin = kForecastMargin);

/// The timeline behind a candidate.
Timeline simulate_candidate(const PlanTask& task, const PlanCandidate& candidate);

/// Its table.
Schedule schedule_of(const PlanTask& task, const PlanCandidate& candidate);

}  // namespace convoy
