// A pipeline's memory: measured stage by stage and held against the caps before the first step.
#include <algorithm>
#include <mutex>

#include "engine/train/forecast.h"
#include "engine/train/pipeline_runner.h"

namespace convoy {
namespace {

// Batch norm refuses a single value: made-up images are two then.
constexpr std::int64_t kFewestImages = 2;

// Whether weights' gradients wait for an instruction that does not follow at once.
bool splits(const Schedule& schedule) {
  for (const ScheduleLine& line : schedule.lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i].op != ScheduleOp::backward_input) continue;
      const Instruction weights{ScheduleOp::backward_weight, line[i].stage, line[i].micro_batch};
      if (i + 1 == line.size() || !(line[i + 1] == weights)) return true;
    }
  }
  return false;
}

}  // namespace

void PipelineRunner::measure_memory(const std::vector<MicroBatchPlan>& plans) {
  std::int64_t images = 0;
  bool postpones = false;
  for (const MicroBatchPlan& plan : plans) {
    postpones = postpones || splits(tables_.training(plan.count()));
    for (int replica = 0; replica < setup_.layout.replicas; ++replica) {
      for (std::int64_t count : plan.images_of(replica)) images = std::max(images, count);
    }
  }
  if (images == 0) return;
  images = std::max(images, kFewestImages);
  std::mutex one_by_one;  // a pool that two fill at once tells nothing of either
  run([&](StageWorker& worker) {
    std::unique_lock lock(one_by_one, std::defer_lock);
    if (shares_devices()) lock.lock();
    worker.measure_memory(images, postpones);
  });
  if (device_memory_ == 0) return;
  const std::vector<WorkerReport> reports = all_reports(false, Readers::all);
  const Forecast forecast(setup_.layout, setup_.map, reports, size_of(dtype_), setup_.slots);
  for (const MicroBatchPlan& plan : plans) {
    forecast.check_memory(tables_.training(plan.count()), plan,
                          static_cast<double>(device_memory_));
  }
}

}  // namespace convoy
