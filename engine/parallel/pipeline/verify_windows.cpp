// Check 3 of a schedule: AR and ST end each window of a stage.
#include <algorithm>

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
        return;  // transfers may run ahead into the next window
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
}

}  // namespace convoy
