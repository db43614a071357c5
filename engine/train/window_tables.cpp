#include "engine/train/window_tables.h"

#include <algorithm>
#include <numeric>

#include "engine/parallel/pipeline/expand.h"
#include "engine/parallel/pipeline/schedules.h"
#include "engine/parallel/pipeline/verify_schedule.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

std::vector<int> first_ids(int count) {
  std::vector<int> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

int micro_batches_of(const Schedule& schedule) {
  int end = 0;
  for (const ScheduleLine& line : schedule.lines) {
    for (const Instruction& at : line) {
      if (!of_window(at.op)) end = std::max(end, at.micro_batch + 1);
    }
  }
  return end;
}

// A short window has the first ones alone.
Schedule with_first(Schedule schedule, int micro_batches) {
  for (ScheduleLine& line : schedule.lines) {
    std::erase_if(line, [&](const Instruction& at) {
      return !of_window(at.op) && at.micro_batch >= micro_batches;
    });
  }
  return schedule;
}

// All images of the window were passed over: replicas still meet.
Schedule without_micro_batches(const Layout& layout) {
  Schedule schedule;
  for (int worker = 0; worker < layout.workers_per_replica; ++worker) {
    ScheduleLine& line = schedule.lines.emplace_back();
    for (ScheduleOp op : {ScheduleOp::all_reduce, ScheduleOp::step}) {
      for (int stage : layout.stages_of(worker)) line.push_back({op, stage, 0});
    }
  }
  return schedule;
}

}  // namespace

Schedule WindowTables::make(int micro_batches) const {
  if (micro_batches == 0) return without_micro_batches(layout_);
  if (options_.table) {
    const int given = micro_batches_of(*options_.table);
    CONVOY_CHECK(given >= micro_batches,
                 "{}: the table has {} micro-batches, a window of this run has {}",
                 options_.table_source, given, micro_batches);
    return with_first(*options_.table, micro_batches);
  }
  return make_schedule({.name = options_.name,
                        .workers = layout_.workers_per_replica,
                        .stages_per_worker = layout_.stages_per_worker,
                        .micro_batches = first_ids(micro_batches),
                        .warm_up = options_.warm_up,
                        .gradient_after_weight = options_.gradient_after_weight});
}

void WindowTables::prove(const Schedule& schedule, int micro_batches) const {
  if (micro_batches == 0) return;
  try {
    verify_schedule(schedule, {layout_.stages(), {first_ids(micro_batches)}}, {.capacity = slots_});
  } catch (const Error& error) {
    constexpr std::string_view kAnyTable = "schedule: ";
    if (!options_.table || !error.text().starts_with(kAnyTable)) throw;
    CONVOY_FAIL(usage, "{}: {}", options_.table_source, error.text().substr(kAnyTable.size()));
  }
  const std::vector<int> owners = stage_owners(schedule);
  for (int stage = 0; stage < layout_.stages(); ++stage) {
    const int owner = owners.at(static_cast<std::size_t>(stage));
    CONVOY_CHECK(owner == stage % layout_.workers_per_replica,
                 "{}: stage {} is on worker {}, expected worker {} of {}", options_.table_source,
                 stage, owner, stage % layout_.workers_per_replica, layout_.workers_per_replica);
  }
}

const Schedule& WindowTables::training(int micro_batches) {
  const auto found = training_.find(micro_batches);
  if (found != training_.end()) return found->second;
  Schedule schedule = make(micro_batches);
  prove(schedule, micro_batches);
  return training_.emplace(micro_batches, std::move(schedule)).first->second;
}

const Schedule& WindowTables::forwards(int micro_batches) {
  const auto found = forwards_.find(micro_batches);
  if (found != forwards_.end()) return found->second;
  const ScheduleShape shape{
      layout_.workers_per_replica, micro_batches, layout_.stages_per_worker, {}};
  Schedule schedule;
  schedule.lines.resize(static_cast<std::size_t>(shape.workers));
  if (micro_batches > 0) schedule = interleaved(shape);
  for (ScheduleLine& line : schedule.lines) {
    std::erase_if(line, [](const Instruction& at) { return at.op != ScheduleOp::forward; });
  }
  schedule = expand(schedule);
  for (ScheduleLine& line : schedule.lines) {
    std::erase_if(line, [](const Instruction& at) { return of_window(at.op); });
  }
  check_no_deadlock(schedule, {.capacity = slots_});
  return forwards_.emplace(micro_batches, std::move(schedule)).first->second;
}

}  // namespace convoy
