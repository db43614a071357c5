// F 0..w-1; for each k: F w+k while there is one, I k, and from k = r on the lowest open W; at the
// end all open W. Worker r keeps r weight gradients back, which fill its idle time at the end.
#include <algorithm>

#include "engine/parallel/pipeline/schedules.h"

namespace convoy {

Schedule zb_h1(const ScheduleShape& shape) {
  Schedule schedule;
  const int m = shape.micro_batches;
  for (int r = 0; r < shape.workers; ++r) {
    ScheduleLine& line = schedule.lines.emplace_back();
    const int w = std::min(shape.workers - 1 - r, m);
    int open = 0;
    for (int k = 0; k < w; ++k) line.push_back({ScheduleOp::forward, r, k});
    for (int k = 0; k < m; ++k) {
      if (w + k < m) line.push_back({ScheduleOp::forward, r, w + k});
      line.push_back({ScheduleOp::backward_input, r, k});
      if (k >= r) line.push_back({ScheduleOp::backward_weight, r, open++});
    }
    while (open < m) line.push_back({ScheduleOp::backward_weight, r, open++});
  }
  return schedule;
}

}  // namespace convoy
