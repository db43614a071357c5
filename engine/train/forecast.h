// What windows should take by the simulator, from the stages' own measured times and the links':
// set beside what was measured.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/parallel/pipeline/simulate.h"
#include "engine/parallel/pipeline/worker_memory.h"
#include "engine/train/layout.h"
#include "engine/train/micro_batch_plan.h"
#include "engine/train/stage_map.h"
#include "engine/train/worker_report.h"

namespace convoy {

class Forecast {
 public:
  /// `reports`: of all workers, by rank. `element`: bytes of a value that crosses a cut.
  Forecast(const Layout& layout, const StageMap& map, const std::vector<WorkerReport>& reports,
           std::size_t element, int slots);

  /// One replica's part of a window.
  Timeline window(const Schedule& schedule, const MicroBatchPlan& plan, int replica) const;
  /// Most bytes of each of its workers' devices, where stages' memory was measured. Messages are
  /// not among them: links hold those in the host's memory.
  std::vector<MemoryPeak> peaks(const Schedule& schedule, const MicroBatchPlan& plan,
                                int replica) const;
  /// `resource` for the first worker that needs more than `cap` bytes, before it does.
  void check_memory(const Schedule& schedule, const MicroBatchPlan& plan, double cap) const;
  /// A window as the states of one worker; they sum to the makespan.
  StateSeconds states(const Timeline& timeline, const MicroBatchPlan& plan, int rank) const;

 private:
  const Layout layout_;
  const std::vector<WorkerReport>& reports_;
  std::vector<std::vector<StageCost>> costs_;  // of each replica's stages
  std::vector<Link> links_;                    // of each replica
  std::vector<double> host_s_;                 // likewise
  const int slots_;
};

}  // namespace convoy
