// A schedule's time on paper: the table of the verifier, walked with measured seconds. Exact for a
// runner that does what the table says: a worker runs its line in order; transfers run beside it,
// one at a time per direction between two workers (but for what they take of the workers' own
// cores); all-reduces run beside it, one at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/parallel/pipeline/instruction.h"
#include "engine/parallel/pipeline/schedule_walk.h"
#include "engine/parallel/pipeline/stage_cost.h"
#include "engine/parallel/pipeline/worker_memory.h"

namespace convoy {

/// What a simulated step consists of.
struct SimulationTask {
  std::vector<StageCost> costs;      ///< per stage
  std::vector<std::int64_t> images;  ///< per micro-batch id
  Link link = {};                    ///< between each two workers
  double host_s = 0;                 ///< of each instruction on its worker
  int slots = 2;                     ///< messages a channel holds before a send waits
};

/// An instruction in seconds from the start of the window: a receive or send from the start of its
/// waiting on, a step without it.
struct ScheduleSpan {
  Instruction instruction;
  double begin = 0;
  double end = 0;
};

/// Where one worker's time goes; the parts sum to the makespan.
struct WorkerTimes {
  PhaseTimes compute = {};
  double step = 0;
  double starved = 0;     ///< waits for a peer that has not begun to send
  double transfer = 0;    ///< waits for a message on its way
  double slot_full = 0;   ///< waits for room to send
  double all_reduce = 0;  ///< waits for the replicas
  double host = 0;
  double drained = 0;  ///< done, others are not

  /// All that is neither computing nor the host.
  double idle() const { return starved + transfer + slot_full + all_reduce + drained; }
};

struct Timeline {
  double makespan = 0;
  std::vector<std::vector<ScheduleSpan>> spans;  ///< per worker, in order
  std::vector<WorkerTimes> workers;
  std::vector<MemoryPeak> memory;  ///< per worker
};

/// Runs a table that verify_schedule accepts; `usage` for one that cannot reach its end.
Timeline simulate(const Schedule& schedule, const SimulationTask& task);

}  // namespace convoy
