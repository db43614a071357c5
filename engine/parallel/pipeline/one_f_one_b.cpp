// F 0..w-1; I k, W k for each k, preceded by F w+k while w+k < m. w = min(p-1-r, m) unless given.
#include <algorithm>

#include "engine/parallel/pipeline/schedules.h"

namespace convoy {

Schedule one_f_one_b(const ScheduleShape& shape) {
  Schedule schedule;
  const int m = shape.micro_batches;
  for (int r = 0; r < shape.workers; ++r) {
    ScheduleLine& line = schedule.lines.emplace_back();
    const int w = std::min(shape.warm_up.empty() ? shape.workers - 1 - r : shape.warm_up[r], m);
    for (int k = 0; k < w; ++k) line.push_back({ScheduleOp::forward, r, k});
    for (int k = 0; k < m; ++k) {
      if (w + k < m) line.push_back({ScheduleOp::forward, r, w + k});
      line.push_back({ScheduleOp::backward_input, r, k});
      line.push_back({ScheduleOp::backward_weight, r, k});
    }
  }
  return schedule;
}

}  // namespace convoy
