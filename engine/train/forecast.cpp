#include "engine/train/forecast.h"

#include <algorithm>

#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr int kNoSlots = 0;

double bytes_per_image(const std::vector<CrossingTensor>& tensors, std::size_t element) {
  double values = 0;
  for (const CrossingTensor& tensor : tensors) values += static_cast<double>(tensor.shape.count());
  return values * static_cast<double>(element);
}

// The slowest direction: a schedule runs at its pace.
void widen(Link& link, const std::vector<LinkReport>& reports) {
  for (const LinkReport& report : reports) {
    link.latency_s = std::max(link.latency_s, report.latency_s);
    const bool slower = link.bytes_per_s == 0 || report.bytes_per_s < link.bytes_per_s;
    if (report.bytes_per_s > 0 && slower) link.bytes_per_s = report.bytes_per_s;
  }
}

}  // namespace

Forecast::Forecast(const Layout& layout, const StageMap& map,
                   const std::vector<WorkerReport>& reports, std::size_t element, int slots)
    : layout_(layout), reports_(reports), slots_(slots) {
  for (int replica = 0; replica < layout.replicas; ++replica) {
    std::vector<StageCost>& costs = costs_.emplace_back(static_cast<std::size_t>(map.count()));
    Link& link = links_.emplace_back();
    double& host_s = host_s_.emplace_back(0);
    for (int position = 0; position < layout.workers_per_replica; ++position) {
      const auto rank = static_cast<std::size_t>(layout.rank_of(replica, position));
      const WorkerReport& report = reports[rank];
      widen(link, report.links);
      host_s += report.host_s / layout.workers_per_replica;
      for (const StageReport& stage : report.stages) {
        StageCost& cost = costs[static_cast<std::size_t>(stage.stage)];
        const StageEntry& entry = map.stages[static_cast<std::size_t>(stage.stage)];
        cost = stage.cost;
        cost.memory.input_bytes = bytes_per_image(entry.inputs, element);
        cost.memory.output_bytes = bytes_per_image(entry.outputs, element);
      }
    }
  }
}

Timeline Forecast::window(const Schedule& schedule, const MicroBatchPlan& plan, int replica) const {
  const auto place = static_cast<std::size_t>(replica);
  return simulate(schedule, {.costs = costs_[place],
                             .images = plan.images_of(replica),
                             .link = links_[place],
                             .host_s = host_s_[place],
                             .slots = slots_});
}

std::vector<MemoryPeak> Forecast::peaks(const Schedule& schedule, const MicroBatchPlan& plan,
                                        int replica) const {
  if (plan.count() == 0) return std::vector<MemoryPeak>(schedule.lines.size());
  return worst_memory(
      schedule, {costs_[static_cast<std::size_t>(replica)], plan.images_of(replica), kNoSlots});
}

void Forecast::check_memory(const Schedule& schedule, const MicroBatchPlan& plan,
                            double cap) const {
  for (int replica = 0; replica < layout_.replicas; ++replica) {
    const std::vector<MemoryPeak> peaks = this->peaks(schedule, plan, replica);
    for (int position = 0; position < layout_.workers_per_replica; ++position) {
      const auto& [bytes, fixed, at] = peaks[static_cast<std::size_t>(position)];
      if (bytes <= cap) continue;
      CONVOY_FAIL(resource,
                  "worker {} needs {:.0f} bytes at {} ({:.0f} of them for parameters, their "
                  "gradients, optimizer state and workspace), its cap is {:.0f}; more stages, "
                  "smaller micro-batches or --recompute need less",
                  layout_.rank_of(replica, position), bytes, describe(at), fixed, cap);
    }
  }
}

StateSeconds Forecast::states(const Timeline& timeline, const MicroBatchPlan& plan,
                              int rank) const {
  const int replica = layout_.replica_of(rank);
  const WorkerTimes& times = timeline.workers[static_cast<std::size_t>(layout_.position_of(rank))];
  double recompute = 0;
  for (const StageReport& stage : reports_[static_cast<std::size_t>(rank)].stages) {
    for (std::int64_t images : plan.images_of(replica)) {
      const auto found = stage.recompute.find(images);
      if (found != stage.recompute.end()) recompute += found->second;
    }
  }
  StateSeconds seconds = {};
  at(seconds, WorkerState::forward) = times.compute.forward;
  at(seconds, WorkerState::backward_input) = times.compute.backward_input - recompute;
  at(seconds, WorkerState::backward_weight) = times.compute.backward_weight;
  at(seconds, WorkerState::recompute) = recompute;
  at(seconds, WorkerState::optimizer) = times.step;
  // A worker that has done its line waits for the others before it updates its weights.
  at(seconds, WorkerState::starved) = times.starved + times.drained;
  at(seconds, WorkerState::transfer) = times.transfer;
  at(seconds, WorkerState::slot_full) = times.slot_full;
  at(seconds, WorkerState::all_reduce) = times.all_reduce;
  at(seconds, WorkerState::host) = times.host;
  return seconds;
}

}  // namespace convoy
