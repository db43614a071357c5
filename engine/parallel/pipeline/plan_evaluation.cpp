#include "engine/parallel/pipeline/plan_evaluation.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/parallel/bucket_plan.h"
#include "engine/parallel/pipeline/worker_memory.h"
#include "kernels/base/error.h"

namespace convoy {

std::int64_t largest_share(const PlanTask& task, int replicas) {
  return (task.batch + replicas - 1) / replicas;
}

std::vector<std::int64_t> images_of(const PlanTask& task, const PlanCandidate& candidate) {
  const std::int64_t share = largest_share(task, candidate.replicas);
  std::vector<std::int64_t> images;
  for (std::int64_t batch = 0; batch < task.accumulate; ++batch) {
    for (std::int64_t left = share; left > 0; left -= candidate.micro_batch_size) {
      images.push_back(std::min(left, candidate.micro_batch_size));
    }
  }
  return images;
}

namespace {

// Where cuts are simulated: enough for a few workers, few for many.
constexpr int kCutsOfSmall = 20;
constexpr int kCutsOfLarge = 2;
constexpr int kSmall = 8;
// A transfer this long beside the slowest stage makes more warm-up of 1f1b worth a look.
constexpr double kSlowTransfer = 0.02;

// The kinds of a replica's workers, and one more where replicas differ: the worst of all.
struct Kinds {
  std::vector<int> of_workers;
  bool worst = false;
};

Kinds kinds_of(const PlanMachine& machine, const PlanCandidate& candidate) {
  Kinds kinds{std::vector<int>(static_cast<std::size_t>(candidate.stages), 0), false};
  if (candidate.layout == "single" && machine.single_kind) {
    kinds.of_workers.front() = *machine.single_kind;
    return kinds;
  }
  if (machine.kinds.empty()) return kinds;
  const int used = candidate.stages * candidate.replicas;
  for (int rank = 0; rank < used; ++rank) {
    int& kind = kinds.of_workers[static_cast<std::size_t>(rank % candidate.stages)];
    const int own = machine.kinds.at(static_cast<std::size_t>(rank));
    if (rank < candidate.stages) kind = own;
    kinds.worst = kinds.worst || kind != own;
  }
  return kinds;
}

void add_worst_kind(std::vector<NodeCost>& nodes) {
  for (NodeCost& node : nodes) {
    PhaseTimes worst;
    for (const PhaseTimes& times : node.times) {
      worst.forward = std::max(worst.forward, times.forward);
      worst.backward_input = std::max(worst.backward_input, times.backward_input);
      worst.backward_weight = std::max(worst.backward_weight, times.backward_weight);
    }
    node.times.push_back(worst);
  }
}

double least_cap(const std::vector<double>& caps) {
  double least = 0;
  for (double cap : caps) {
    if (cap > 0 && (least == 0 || cap < least)) least = cap;
  }
  return least;
}

double at_or(const std::vector<double>& values, int index, double otherwise) {
  return values.empty() ? otherwise : values.at(static_cast<std::size_t>(index));
}

// Replicas of more workers than a node has, or across its end, send from node to node.
Link transfer_link(const PlanMachine& machine, int stages) {
  const bool inside = machine.per_node == 0 || machine.per_node % stages == 0 ||
                      machine.workers <= machine.per_node;
  return inside ? machine.inside : machine.between;
}

AllReduceCost reduce_cost(const PlanMachine& machine, const PlanCandidate& candidate) {
  AllReduceCost cost;
  cost.replicas = candidate.replicas;
  cost.overlaps = machine.reduce_overlaps;
  if (machine.per_node == 0 || candidate.replicas * candidate.stages <= machine.per_node) {
    cost.link = machine.reduce_inside.value_or(machine.inside);
    return cost;
  }
  // Each stage has a ring of its own, which enters and leaves a node once.
  cost.link = machine.between;
  cost.link.bytes_per_s /= std::min(candidate.stages, machine.per_node);
  return cost;
}

// All-reduce and optimizer of a stage.
auto window_end_of(const PlanMachine& machine, const PlanCandidate& candidate,
                   const std::vector<NodeCost>& nodes) {
  const AllReduceCost reduce = reduce_cost(machine, candidate);
  const auto rates = machine.step_s_per_byte;
  return [reduce, rates, nodes](int first, int end, int device, StageCost& cost) {
    std::vector<GradientPart> parts;
    double bytes = 0, largest = 0;
    for (int i = end; i-- > first;) {
      const NodeCost& node = nodes[static_cast<std::size_t>(i)];
      parts.push_back(
          {node.times[static_cast<std::size_t>(device)].backward(), node.gradient_bytes});
      bytes += node.gradient_bytes;
      largest = std::max(largest, node.gradient_bytes);
    }
    if (reduce.replicas > 1) cost.memory.parameter_bytes += bucket_bytes(bytes, largest);
    cost.all_reduce_s = exposed_all_reduce(reduce, parts);
    const int known = std::min(device, static_cast<int>(rates.size()) - 1);
    cost.step_s = bytes * at_or(rates, std::max(0, known), 0);
  };
}

PartitionTask task_of(const PlanTask& task, const PlanCandidate& candidate) {
  const Kinds kinds = kinds_of(task.machine, candidate);
  PartitionTask partition;
  partition.images = images_of(task, candidate);
  partition.nodes = task.nodes_at(partition.images.front());
  partition.devices = kinds.of_workers;
  if (kinds.worst) {
    add_worst_kind(partition.nodes);
    const int worst = static_cast<int>(partition.nodes.front().times.size()) - 1;
    partition.devices.assign(partition.devices.size(), worst);
  }
  for (int kind : partition.devices) {
    const double cap =
        kinds.worst ? least_cap(task.machine.caps) : at_or(task.machine.caps, kind, 0);
    partition.caps.push_back(cap);
  }
  partition.schedule.name = candidate.schedule;
  partition.schedule.workers = candidate.stages;
  partition.schedule.stages_per_worker = candidate.stages_per_worker;
  partition.schedule.micro_batches.resize(partition.images.size());
  std::iota(partition.schedule.micro_batches.begin(), partition.schedule.micro_batches.end(), 0);
  partition.schedule.warm_up = candidate.warm_up;
  partition.link = transfer_link(task.machine, candidate.stages);
  partition.host_s = task.machine.host_s;
  partition.recompute = candidate.recompute;
  const int stages = candidate.stages * candidate.stages_per_worker;
  partition.candidates = stages <= kSmall ? kCutsOfSmall : kCutsOfLarge;
  partition.add_window_end = window_end_of(task.machine, candidate, partition.nodes);
  return partition;
}

// Another cut, that fits; a text that goes on from `first` where there is none.
Partition partition_within_caps(const PartitionTask& partition, const Error& first) {
  try {
    return choose_partition(partition);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::resource) throw;
    CONVOY_FAIL(resource, "{}; no other cut fits either", first.text());
  }
}

// The cut: as given, else the best without a look at memory, if that fits.
Partition partition_of(const PlanTask& task, const PartitionTask& partition) {
  if (!task.node_ends.empty()) return simulate_cuts(partition, task.node_ends);
  if (least_cap(partition.caps) == 0) return choose_partition(partition);
  PartitionTask free = partition;
  free.caps.clear();
  Partition best = choose_partition(free);
  const MemoryTask memory{best.costs, partition.images, partition.slots};
  try {
    check_memory(make_schedule(partition.schedule), memory, partition.caps);
  } catch (const Error& error) {
    const bool has_cuts = partition.schedule.workers > 1;
    if (error.kind() != ErrorKind::resource || !has_cuts) throw;
    return partition_within_caps(partition, error);
  }
  return best;
}

void fill_in(const PlanTask& task, PlanCandidate& candidate, const PartitionTask& partition,
             const Partition& best) {
  candidate.node_ends = best.ends;
  candidate.micro_batches = static_cast<int>(partition.images.size());
  const Timeline& timeline = best.timeline;
  candidate.seconds = timeline.makespan;
  candidate.images_per_s =
      static_cast<double>(task.batch * task.accumulate) / std::max(timeline.makespan, 1e-12);
  double idle = 0, reduce = 0;
  for (const WorkerTimes& worker : timeline.workers) {
    idle += worker.idle() - worker.all_reduce;
    reduce += worker.all_reduce;
  }
  const double all = timeline.makespan * static_cast<double>(timeline.workers.size());
  candidate.bubble = all > 0 ? idle / all : 0;
  candidate.all_reduce = all > 0 ? reduce / all : 0;
  candidate.memory.clear();
  const MemoryTask memory{best.costs, partition.images, partition.slots};
  for (const MemoryPeak& peak : worst_memory(make_schedule(partition.schedule), memory)) {
    candidate.memory.push_back(peak.bytes);
  }
}

// Slow transfers cost 1f1b a round trip for each micro-batch: more forwards beforehand hide it.
void try_warm_up(const PlanTask& task, PlanCandidate& candidate, PartitionTask partition,
                 const Partition& best) {
  if (candidate.schedule != "1f1b" || candidate.stages < 2 || !candidate.warm_up.empty()) return;
  const NodeSums sums(partition.nodes, partition.images.front());
  double slowest = 0, transfer = 0;
  int first = 0;
  for (std::size_t stage = 0; stage < best.ends.size(); ++stage) {
    const int end = best.ends[stage];
    slowest = std::max(slowest, sums.times(first, end, partition.devices[stage]).total());
    if (first > 0) transfer = std::max(transfer, partition.link.seconds(sums.message_bytes(first)));
    first = end;
  }
  if (transfer < kSlowTransfer * slowest) return;
  PlanCandidate longer = candidate;
  for (int worker = 0; worker < candidate.stages; ++worker) {
    longer.warm_up.push_back(
        std::min(2 * (candidate.stages - 1 - worker), candidate.micro_batches));
  }
  partition.schedule.warm_up = longer.warm_up;
  try {
    fill_in(task, longer, partition, simulate_cuts(partition, best.ends));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::resource) throw;
    return;
  }
  if (longer.seconds < candidate.seconds) candidate = std::move(longer);
}

void evaluate_once(const PlanTask& task, PlanCandidate& candidate) {
  const PartitionTask partition = task_of(task, candidate);
  const Partition best = partition_of(task, partition);
  fill_in(task, candidate, partition, best);
  try_warm_up(task, candidate, partition, best);
}

}  // namespace

// Recomputes where memory asks for it; what does not fit even so is dropped with the reason.
void evaluate(const PlanTask& task, PlanCandidate& candidate) {
  candidate.recompute = task.recompute;
  for (;;) {
    try {
      return evaluate_once(task, candidate);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::resource) throw;
      // One stage goes back through each micro-batch at once: nothing would be alive for shorter.
      const bool one_stage = candidate.stages * candidate.stages_per_worker == 1;
      if (candidate.recompute || one_stage) {
        candidate.dropped = error.text();
        return;
      }
      candidate.recompute = true;
    }
  }
}

Schedule schedule_of(const PlanTask& task, const PlanCandidate& candidate) {
  return make_schedule(task_of(task, candidate).schedule);
}

Timeline simulate_candidate(const PlanTask& task, const PlanCandidate& candidate) {
  PartitionTask partition = task_of(task, candidate);
  partition.caps.clear();
  return simulate_cuts(partition, candidate.node_ends).timeline;
}

}  // namespace convoy
