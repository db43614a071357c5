// Check 2 of a schedule, first half: who owns a stage, and what each stage does in which order.
#include <algorithm>
#include <set>

#include "engine/parallel/pipeline/places.h"
#include "engine/parallel/pipeline/verify_schedule.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr ScheduleOp kPhases[] = {ScheduleOp::forward, ScheduleOp::backward_input,
                                  ScheduleOp::backward_weight};

void check_owner(const Schedule& schedule, int worker, int stages, std::vector<int>& owners) {
  CONVOY_CHECK(!schedule.lines[worker].empty(), "schedule: worker {} has nothing to do", worker);
  for (const Instruction& instruction : schedule.lines[worker]) {
    const int stage = instruction.stage;
    CONVOY_CHECK(stage >= 0 && stage < stages, "schedule: {} of worker {}: stages are 0 to {}",
                 describe(instruction), worker, stages - 1);
    if (owners[stage] < 0) owners[stage] = worker;
    CONVOY_CHECK(owners[stage] == worker, "schedule: {} of worker {}: stage {} is worker {}'s",
                 describe(instruction), worker, stage, owners[stage]);
  }
}

std::vector<int> micro_batches_of(const ScheduleLine& line, ScheduleOp op, int stage) {
  std::vector<int> ids;
  for (const Instruction& instruction : line) {
    if (instruction.op == op && instruction.stage == stage) ids.push_back(instruction.micro_batch);
  }
  return ids;
}

// Names the first instruction that is wrong: unknown, twice, missing, or out of order.
[[noreturn]] void fail_order(ScheduleOp op, int stage, const std::vector<int>& found,
                             const std::vector<int>& expected) {
  auto text = [&](int id) { return describe(Instruction{op, stage, id}); };
  std::set<int> seen;
  for (int id : found) {
    CONVOY_CHECK(std::binary_search(expected.begin(), expected.end(), id),
                 "schedule: {}: there is no micro-batch {}", text(id), id);
    CONVOY_CHECK(seen.insert(id).second, "schedule: {} stands there twice", text(id));
  }
  for (int id : expected) CONVOY_CHECK(seen.count(id), "schedule: {} is missing", text(id));
  const auto fall = std::adjacent_find(found.begin(), found.end(), std::greater<>());
  CONVOY_FAIL(usage, "schedule: {} stands before {}, expected ascending micro-batches",
              text(fall[0]), text(fall[1]));
}

void check_before(const Places& places, const Instruction& first, const Instruction& second) {
  CONVOY_CHECK(places.of(first) < places.of(second), "schedule: {} stands before {}",
               describe(second), describe(first));
}

void check_stage(const Schedule& schedule, const Places& places, int stage,
                 const std::vector<int>& ids) {
  const ScheduleLine& line = schedule.lines[places.owner(stage)];
  for (ScheduleOp op : kPhases) {
    const std::vector<int> found = micro_batches_of(line, op, stage);
    if (found != ids) fail_order(op, stage, found, ids);
  }
  for (int k : ids) {
    check_before(places, {kPhases[0], stage, k}, {kPhases[1], stage, k});
    check_before(places, {kPhases[1], stage, k}, {kPhases[2], stage, k});
  }
}

}  // namespace

void check_stages(const Schedule& schedule, int stages) {
  CONVOY_CHECK(stages >= 1, "schedule: {} stages, expected at least 1", stages);
  std::vector<int> owners(stages, -1);
  for (int worker = 0; worker < schedule.workers(); ++worker) {
    check_owner(schedule, worker, stages, owners);
  }
  for (int stage = 0; stage < stages; ++stage) {
    CONVOY_CHECK(owners[stage] >= 0, "schedule: stage {} is empty, no worker has it", stage);
  }
}

void check_micro_batches(const Schedule& schedule, const ScheduleTask& task) {
  const Places places(schedule, task.stages);
  const std::vector<int> ids = all_micro_batches(task);
  for (int stage = 0; stage < task.stages; ++stage) check_stage(schedule, places, stage, ids);
  for (int stage = 0; stage + 1 < task.stages; ++stage) {
    if (places.crosses(stage)) continue;
    for (int k : ids) {
      check_before(places, {kPhases[0], stage, k}, {kPhases[0], stage + 1, k});
      check_before(places, {kPhases[1], stage + 1, k}, {kPhases[1], stage, k});
    }
  }
}

}  // namespace convoy
