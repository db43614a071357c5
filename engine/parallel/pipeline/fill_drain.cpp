// F 0..m-1; then I k, W k for k = 0..m-1.
#include "engine/parallel/pipeline/schedules.h"

namespace convoy {

Schedule fill_drain(const ScheduleShape& shape) {
  Schedule schedule;
  for (int r = 0; r < shape.workers; ++r) {
    ScheduleLine& line = schedule.lines.emplace_back();
    for (int k = 0; k < shape.micro_batches; ++k) line.push_back({ScheduleOp::forward, r, k});
    for (int k = 0; k < shape.micro_batches; ++k) {
      line.push_back({ScheduleOp::backward_input, r, k});
      line.push_back({ScheduleOp::backward_weight, r, k});
    }
  }
  return schedule;
}

}  // namespace convoy
