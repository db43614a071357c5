#include "engine/parallel/pipeline/planner.h"

#include <algorithm>
#include <utility>

#include "engine/parallel/pipeline/plan_evaluation.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr int kFewWorkers = 8;
constexpr int kMostStages = 64;

// Micro-batch sizes worth a look: those of a few counts of micro-batches. A rest that batch norm
// would refuse is none.
std::vector<std::int64_t> sizes_for(const PlanTask& task, int replicas, int stages) {
  const std::int64_t share = largest_share(task, replicas);
  if (task.micro_batch_size) return {std::min(*task.micro_batch_size, share)};
  static constexpr int kCounts[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 128, 256};
  const bool few = task.machine.workers <= kFewWorkers;
  std::vector<std::int64_t> sizes;
  for (int count : kCounts) {
    const bool power = (count & (count - 1)) == 0;
    if (count > share || count > 8 * stages || (!few && !power)) continue;
    const std::int64_t size = (share + count - 1) / count;
    const std::int64_t rest = share % size;
    if (size < task.least_images || (rest > 0 && rest < task.least_images)) continue;
    if (sizes.empty() || sizes.back() != size) sizes.push_back(size);
  }
  if (sizes.empty()) sizes.push_back(share);
  return sizes;
}

class Planner {
 public:
  explicit Planner(const PlanTask& task) : task_(task) {
    nodes_ = static_cast<int>(task.nodes_at(1).size());
  }

  std::vector<PlanCandidate> run() {
    const int workers = task_.machine.workers;
    const bool open = !task_.replicas && !task_.stages;
    PlanCandidate one;
    one.layout = "single";
    if (workers > 1 && open) add(one);
    for (int stages = 1; stages <= workers; ++stages) {
      if (workers % stages != 0 || !wanted(stages)) continue;
      add_layout(workers / stages, stages);
    }
    CONVOY_CHECK(!candidates_.empty(),
                 "plan: no layout of {} workers has {}, expected replicas x stages = workers",
                 workers, asked());
    std::stable_sort(candidates_.begin(), candidates_.end(), [](const auto& a, const auto& b) {
      return std::pair(!a.dropped.empty(), a.seconds) < std::pair(!b.dropped.empty(), b.seconds);
    });
    return std::move(candidates_);
  }

 private:
  bool wanted(int stages) const {
    if (task_.stages && *task_.stages != stages) return false;
    if (task_.replicas && *task_.replicas * stages != task_.machine.workers) return false;
    if (task_.stages) return true;
    return stages <= std::min(nodes_, kMostStages);
  }

  std::string asked() const {
    if (!task_.stages) return fmt::format("{} replicas", *task_.replicas);
    if (!task_.replicas) return fmt::format("{} stages", *task_.stages);
    return fmt::format("{} replicas of {} stages", *task_.replicas, *task_.stages);
  }

  void add_layout(int replicas, int stages) {
    PlanCandidate candidate;
    candidate.replicas = replicas;
    candidate.stages = stages;
    candidate.layout = replicas * stages == 1 ? "single"
                       : stages == 1          ? "data-parallel"
                       : replicas == 1        ? "pipeline"
                                              : "both";
    add(candidate);
  }

  // All its sizes and schedules.
  void add(PlanCandidate candidate) {
    if (candidate.replicas > task_.batch) {
      candidate.dropped =
          fmt::format("{} replicas for a batch of {} images", candidate.replicas, task_.batch);
      candidates_.push_back(std::move(candidate));
      return;
    }
    for (std::int64_t size : sizes_for(task_, candidate.replicas, candidate.stages)) {
      candidate.micro_batch_size = size;
      candidate.micro_batches = static_cast<int>(images_of(task_, candidate).size());
      add_schedules(candidate);
    }
  }

  void add_schedules(PlanCandidate candidate) {
    for (const std::string& schedule : schedules_for(candidate)) {
      candidate.schedule = schedule;
      const bool several = find_schedule(schedule).several_stages;
      candidate.stages_per_worker = several && candidate.stages > 1 ? task_.stages_per_worker : 1;
      PlanCandidate made = candidate;
      const int stages = made.stages * made.stages_per_worker;
      if (stages > nodes_) {
        made.dropped =
            fmt::format("{} stages for {} parts of the network that can be cut", stages, nodes_);
      } else {
        evaluate(task_, made);
      }
      candidates_.push_back(std::move(made));
    }
  }

  std::vector<std::string> schedules_for(const PlanCandidate& candidate) const {
    if (candidate.stages == 1) return {"1f1b"};
    if (task_.schedule) return {*task_.schedule};
    if (candidate.micro_batches == 1) return {"fill-drain"};  // model parallel
    std::vector<std::string> names = {"fill-drain", "1f1b", "zb-h1"};
    if (candidate.stages * task_.stages_per_worker <= std::min(nodes_, kMostStages)) {
      names.emplace_back("interleaved");
    }
    return names;
  }

  const PlanTask& task_;
  int nodes_;
  std::vector<PlanCandidate> candidates_;
};

void check_task(const PlanTask& task) {
  CONVOY_CHECK(task.batch >= 1, "plan: a batch of {} images, expected at least 1", task.batch);
  CONVOY_CHECK(task.machine.workers >= 1, "plan: {} workers, expected at least 1",
               task.machine.workers);
}

}  // namespace

std::vector<std::int64_t> sizes_of(const PlanTask& task) {
  check_task(task);
  std::vector<std::int64_t> all;
  const int workers = task.machine.workers;
  for (int stages = 1; stages <= std::min(workers, kMostStages); ++stages) {
    if (workers % stages != 0 || (task.stages && *task.stages != stages)) continue;
    if (task.replicas && *task.replicas * stages != workers) continue;
    if (workers / stages > task.batch) continue;
    for (std::int64_t size : sizes_for(task, workers / stages, stages)) all.push_back(size);
  }
  if (!task.replicas && !task.stages) {
    for (std::int64_t size : sizes_for(task, 1, 1)) all.push_back(size);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::vector<PlanCandidate> plan_layouts(const PlanTask& task) {
  check_task(task);
  return Planner(task).run();
}

const PlanCandidate& recommended(const std::vector<PlanCandidate>& candidates, double margin) {
  CONVOY_CHECK(!candidates.empty(), "plan: no candidate");
  const PlanCandidate& fastest = candidates.front();
  if (!fastest.dropped.empty()) {
    CONVOY_FAIL(resource, "plan: no layout fits; {}", fastest.dropped);
  }
  for (const PlanCandidate& candidate : candidates) {
    if (!candidate.dropped.empty() || candidate.stages > 1) continue;
    return fastest.seconds < (1 - margin) * candidate.seconds ? fastest : candidate;
  }
  return fastest;
}

}  // namespace convoy
