#include "engine/parallel/pipeline/partition.h"

#include <algorithm>

#include "engine/parallel/pipeline/cut_search.h"
#include "engine/parallel/pipeline/worker_memory.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

std::int64_t largest(const std::vector<std::int64_t>& images) {
  CONVOY_CHECK(!images.empty(), "partition: no micro-batch");
  return *std::max_element(images.begin(), images.end());
}

int stages_of(const PartitionTask& task) {
  return task.schedule.workers * task.schedule.stages_per_worker;
}

int device_of(const PartitionTask& task, int stage) {
  if (task.devices.empty()) return 0;
  return task.devices.at(stage % task.schedule.workers);
}

StageCost stage_cost(const PartitionTask& task, const NodeSums& sums, int stage, int first,
                     int end) {
  StageCost cost = sums.stage(first, end, device_of(task, stage));
  if (task.recompute) cost = with_recompute(cost);
  if (task.add_window_end) task.add_window_end(first, end, device_of(task, stage), cost);
  return cost;
}

// Whether a stage fits into its worker, as the verifier counts; the other stages do not matter.
bool fits(const PartitionTask& task, const Schedule& schedule, int stage, const StageCost& cost) {
  MemoryTask memory{std::vector<StageCost>(stages_of(task)), task.images, task.slots};
  memory.costs[stage] = cost;
  return worst_memory({{schedule.lines[stage]}}, memory)[0].bytes <= task.caps[stage];
}

CutSearch search_of(const PartitionTask& task, const NodeSums& sums, const Schedule& schedule) {
  CutSearch search;
  search.stages = stages_of(task);
  search.nodes = sums.nodes();
  search.micro_batches = static_cast<int>(task.schedule.micro_batches.size());
  search.keep = task.candidates;
  search.phases_apart = find_schedule(task.schedule.name).phases_apart;
  search.times = [&](int stage, int first, int end) {
    PhaseTimes times = sums.times(first, end, device_of(task, stage));
    if (task.recompute) times.backward_input += times.forward;
    return times;
  };
  search.transfer_s = [&](int place) {
    return place > 0 ? task.link.seconds(sums.message_bytes(place)) : 0;
  };
  const bool capped = !task.caps.empty() && task.schedule.stages_per_worker == 1;
  search.fits = [&task, &sums, &schedule, capped](int stage, int first, int end) {
    if (!capped || task.caps[stage] <= 0) return true;
    return fits(task, schedule, stage, stage_cost(task, sums, stage, first, end));
  };
  return search;
}

void check_task(const PartitionTask& task) {
  const auto workers = static_cast<std::size_t>(task.schedule.workers);
  CONVOY_CHECK(task.devices.empty() || task.devices.size() == workers,
               "partition: {} devices for {} workers", task.devices.size(), workers);
  CONVOY_CHECK(task.caps.empty() || task.caps.size() == workers,
               "partition: {} memory caps for {} workers", task.caps.size(), workers);
  CONVOY_CHECK(stages_of(task) <= static_cast<int>(task.nodes.size()),
               "partition: {} stages for {} nodes, expected at least one node a stage",
               stages_of(task), task.nodes.size());
}

Partition simulated(const PartitionTask& task, const NodeSums& sums, const Schedule& schedule,
                    const std::vector<int>& ends) {
  Partition partition;
  partition.ends = ends;
  for (std::size_t stage = 0; stage < ends.size(); ++stage) {
    const int first = stage == 0 ? 0 : ends[stage - 1];
    partition.costs.push_back(stage_cost(task, sums, static_cast<int>(stage), first, ends[stage]));
  }
  if (!task.caps.empty()) {
    check_memory(schedule, {partition.costs, task.images, task.slots}, task.caps);
  }
  partition.timeline =
      simulate(schedule, {partition.costs, task.images, task.link, task.host_s, task.slots});
  return partition;
}

}  // namespace

std::vector<Partition> best_cuts(const PartitionTask& task) {
  check_task(task);
  const Schedule schedule = make_schedule(task.schedule);
  const NodeSums sums(task.nodes, largest(task.images));
  std::vector<Partition> partitions;
  for (const Cuts& cuts : search_cuts(search_of(task, sums, schedule))) {
    partitions.push_back({cuts.ends, cuts.seconds, {}, {}});
  }
  return partitions;
}

Partition simulate_cuts(const PartitionTask& task, const std::vector<int>& ends) {
  check_task(task);
  CONVOY_CHECK(static_cast<int>(ends.size()) == stages_of(task),
               "partition: {} cuts give {} stages, "
               "expected {}",
               ends.size() - 1, ends.size(), stages_of(task));
  for (std::size_t stage = 0; stage < ends.size(); ++stage) {
    CONVOY_CHECK(ends[stage] > (stage == 0 ? 0 : ends[stage - 1]), "partition: stage {} is empty",
                 stage);
  }
  CONVOY_CHECK(ends.back() == static_cast<int>(task.nodes.size()),
               "partition: the last stage ends at node {}, expected {}", ends.back(),
               task.nodes.size());
  const Schedule schedule = make_schedule(task.schedule);
  const NodeSums sums(task.nodes, largest(task.images));
  Partition partition = simulated(task, sums, schedule, ends);
  partition.objective_s = cut_seconds(search_of(task, sums, schedule), ends);
  return partition;
}

Partition choose_partition(const PartitionTask& task) {
  const Schedule schedule = make_schedule(task.schedule);
  const NodeSums sums(task.nodes, largest(task.images));
  Partition best;
  for (const Partition& candidate : best_cuts(task)) {
    try {
      Partition partition = simulated(task, sums, schedule, candidate.ends);
      partition.objective_s = candidate.objective_s;
      const bool better = best.ends.empty() || partition.timeline.makespan < best.timeline.makespan;
      if (better) best = std::move(partition);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::resource) throw;  // it does not fit: try the next one
    }
  }
  if (best.ends.empty()) {
    CONVOY_FAIL(resource,
                "partition: no cut of {} nodes into {} stages fits into the workers' memory",
                task.nodes.size(), stages_of(task));
  }
  return best;
}

}  // namespace convoy
