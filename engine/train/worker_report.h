// What a worker tells of its time: seconds in each state, and what phases of its stages take, from
// which a step is forecast.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "comm/link_test.h"
#include "engine/parallel/pipeline/stage_cost.h"
#include "engine/parallel/pipeline/worker_states.h"

namespace convoy {

/// Measured seconds of one stage's phases by images of a micro-batch. Recomputation is part of the
/// backward, and is also told apart.
class PhaseSamples {
 public:
  enum Phase { forward, backward_input, backward_weight, recompute };

  void add(Phase phase, std::int64_t images, double seconds);
  /// The medians of the latest ones.
  std::map<std::int64_t, PhaseTimes> times() const;
  std::map<std::int64_t, double> recompute_times() const;

 private:
  std::map<std::int64_t, std::array<std::deque<double>, 4>> samples_;
};

/// One of a worker's stages.
struct StageReport {
  int stage = 0;
  StageCost cost;  ///< times, all_reduce_s, step_s, and memory where it was measured
  std::map<std::int64_t, double> recompute;
};

struct WorkerReport {
  WorkerAccount account;  ///< without a forecast
  std::vector<StageReport> stages;
  double host_s = 0;  ///< of one instruction
  std::vector<LinkReport> links;
};

/// For the way between processes, without loss.
std::string write_report(const WorkerReport& report);
WorkerReport read_report(const std::string& text);

}  // namespace convoy
