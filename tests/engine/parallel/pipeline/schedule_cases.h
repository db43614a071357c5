// Schedules for tests, by name and size.
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "engine/parallel/pipeline/schedules.h"
#include "engine/parallel/pipeline/simulate.h"
#include "engine/parallel/pipeline/verify_schedule.h"

namespace convoy::testing {

/// A window of micro-batches 0 to m-1 on p workers of v stages.
inline ScheduleRequest request_of(const std::string& name, int p, int m, int v = 1) {
  std::vector<int> ids(m);
  std::iota(ids.begin(), ids.end(), 0);
  return {name, p, v, ids};
}

inline ScheduleTask task_of(int stages, int m) {
  return {stages, {request_of("1f1b", stages, m).micro_batches}};
}

/// A simulation of equal stages and images of one per micro-batch.
inline SimulationTask equal_stages(int stages, int m, const PhaseTimes& times) {
  SimulationTask task;
  task.costs.assign(stages, {{{1, times}}});
  task.images.assign(m, 1);
  task.slots = m;
  return task;
}

}  // namespace convoy::testing
