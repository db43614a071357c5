#include "engine/parallel/pipeline/schedules.h"

#include <algorithm>
#include <functional>

#include "engine/parallel/pipeline/expand.h"
#include "kernels/base/error.h"

namespace convoy {

const NamedSchedule& find_schedule(const std::string& name) {
  std::string known;
  for (const NamedSchedule& schedule : kSchedules) {
    if (name == schedule.name) return schedule;
    known += (known.empty() ? "" : ", ") + std::string(schedule.name);
  }
  CONVOY_FAIL(usage, "schedule: '{}' is none, expected one of {}", name, known);
}

namespace {

void check_request(const ScheduleRequest& request, const NamedSchedule& schedule) {
  CONVOY_CHECK(request.workers >= 1, "schedule: {} workers, expected at least 1", request.workers);
  CONVOY_CHECK(request.stages_per_worker >= 1, "schedule: {} stages a worker, expected at least 1",
               request.stages_per_worker);
  CONVOY_CHECK(request.stages_per_worker == 1 || schedule.several_stages,
               "schedule: {} has one stage a worker, not {}", request.name,
               request.stages_per_worker);
  CONVOY_CHECK(!request.gradient_after_weight || !schedule.weights_postponed,
               "schedule: {} postpones W, its gradients cannot be sent after W", request.name);
  const auto& ids = request.micro_batches;
  CONVOY_CHECK(!ids.empty(), "schedule: no micro-batch, expected at least 1");
  CONVOY_CHECK(ids.front() >= 0, "schedule: micro-batch {}, expected 0 or more", ids.front());
  const auto wrong = std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>());
  if (wrong != ids.end()) {
    CONVOY_FAIL(usage, "schedule: micro-batch {} after {}, expected ascending ones", wrong[1],
                wrong[0]);
  }
}

void check_warm_up(const ScheduleRequest& request) {
  if (request.warm_up.empty()) return;
  CONVOY_CHECK(request.name == "1f1b", "schedule: {} has no warm-up to set, 1f1b has",
               request.name);
  CONVOY_CHECK(static_cast<int>(request.warm_up.size()) == request.workers,
               "schedule: {} warm-ups, expected one for each of {} workers", request.warm_up.size(),
               request.workers);
  for (int warm_up : request.warm_up) {
    CONVOY_CHECK(warm_up >= 0, "schedule: warm-up of {} forwards, expected at least 0", warm_up);
  }
}

}  // namespace

Schedule make_schedule(const ScheduleRequest& request) {
  const NamedSchedule& named = find_schedule(request.name);
  check_request(request, named);
  check_warm_up(request);
  Schedule compute = named.make({request.workers, static_cast<int>(request.micro_batches.size()),
                                 request.stages_per_worker, request.warm_up});
  for (ScheduleLine& line : compute.lines) {
    for (Instruction& instruction : line) {
      instruction.micro_batch = request.micro_batches[instruction.micro_batch];
    }
  }
  return expand(compute, {request.gradient_after_weight});
}

}  // namespace convoy
