// Check 3 of a schedule: AR and ST end each window of a stage, and of a worker.
#include <algorithm>
#include <set>

#include "engine/parallel/pipeline/places.h"
#include "engine/parallel/pipeline/verify_schedule.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

// The windows of one stage, instruction by instruction.
class StageWindows {
 public:
  StageWindows(const ScheduleTask& task, int stage) : task_(task), stage_(stage) {}

  void take(const Instruction& instruction) {
    switch (instruction.op) {
      case ScheduleOp::forward:
      case ScheduleOp::backward_input:
      case ScheduleOp::backward_weight:
        return compute(instruction);
      case ScheduleOp::all_reduce:
        return reduce(instruction);
      case ScheduleOp::step:
        return step(instruction);
      default:
        return;  // check_meetings() looks at transfers
    }
  }

  void end() const {
    CONVOY_CHECK(window_ == task_.windows.size(), "schedule: {} {} is missing in window {}",
                 reduced_ ? "ST" : "AR", stage_, window_);
  }

 private:
  void compute(const Instruction& instruction) {
    const int k = instruction.micro_batch;
    const bool inside =
        window_ < task_.windows.size() &&
        std::binary_search(task_.windows[window_].begin(), task_.windows[window_].end(), k);
    if (!inside) {
      const bool late = window_ > 0 && k <= task_.windows[window_ - 1].back();
      CONVOY_FAIL(usage, "schedule: {} stands {} ST {} of {}", describe(instruction),
                  late ? "after" : "before", stage_, late ? "its window" : "the window before");
    }
    weights_ += instruction.op == ScheduleOp::backward_weight;
  }

  void reduce(const Instruction& instruction) {
    CONVOY_CHECK(window_ < task_.windows.size() && !reduced_,
                 "schedule: {} stands there once too often", describe(instruction));
    const auto& ids = task_.windows[window_];
    if (weights_ < ids.size()) {
      CONVOY_FAIL(usage, "schedule: {} stands before {}", describe(instruction),
                  describe(Instruction{ScheduleOp::backward_weight, stage_, ids[weights_]}));
    }
    reduced_ = true;
  }

  void step(const Instruction& instruction) {
    CONVOY_CHECK(reduced_, "schedule: {} without AR {} before it", describe(instruction), stage_);
    ++window_;
    weights_ = 0;
    reduced_ = false;
  }

  const ScheduleTask& task_;
  int stage_;
  std::size_t window_ = 0, weights_ = 0;
  bool reduced_ = false;
};

// At its last ST of a window a worker waits for all others: the update needs the norm of all
// gradients. So nothing of the window may come later, and nothing of the next one before.
void check_meetings(const ScheduleTask& task, const ScheduleLine& line) {
  std::set<int> stages;
  for (const Instruction& at : line) stages.insert(at.stage);
  std::size_t steps = 0;
  for (const Instruction& at : line) {
    if (at.op == ScheduleOp::step) ++steps;
    if (of_window(at.op)) continue;
    const std::size_t window = steps / stages.size();
    const bool late = window > 0 && at.micro_batch <= task.windows[window - 1].back();
    const bool early = window < task.windows.size() && at.micro_batch > task.windows[window].back();
    if (!late && !early) continue;
    CONVOY_FAIL(
        usage, "schedule: {} stands {}, where all workers wait for each other", describe(at),
        late ? "after the last ST of its window" : "before the last ST of the window before");
  }
}

}  // namespace

void check_windows(const Schedule& schedule, const ScheduleTask& task) {
  const Places places(schedule, task.stages);
  for (int stage = 0; stage < task.stages; ++stage) {
    StageWindows windows(task, stage);
    for (const Instruction& instruction : schedule.lines[places.owner(stage)]) {
      if (instruction.stage == stage) windows.take(instruction);
    }
    windows.end();
  }
  for (const ScheduleLine& line : schedule.lines) check_meetings(task, line);
}

}  // namespace convoy
