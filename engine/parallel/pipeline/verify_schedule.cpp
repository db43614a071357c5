#include "engine/parallel/pipeline/verify_schedule.h"

#include <algorithm>

#include "kernels/base/error.h"

namespace convoy {
namespace {

bool collective(const Instruction& instruction) {
  return instruction.op == ScheduleOp::all_reduce || instruction.op == ScheduleOp::forward ||
         instruction.op == ScheduleOp::backward_input;
}

ScheduleLine collectives_of(const ScheduleLine& line) {
  ScheduleLine found;
  std::copy_if(line.begin(), line.end(), std::back_inserter(found), collective);
  return found;
}

std::string at(const ScheduleLine& line, std::size_t index) {
  return index < line.size() ? describe(line[index]) : "none";
}

void check_same_line(const Schedule& first, const Schedule& other, int replica, int worker) {
  const ScheduleLine expected = collectives_of(first.lines[worker]);
  const ScheduleLine found = collectives_of(other.lines[worker]);
  for (std::size_t i = 0; i < std::max(expected.size(), found.size()); ++i) {
    const bool same = i < expected.size() && i < found.size() && expected[i] == found[i];
    CONVOY_CHECK(same, "schedule: collective {} of worker {} is {} on replica {}, {} on replica 0",
                 i + 1, worker, at(found, i), replica, at(expected, i));
  }
}

}  // namespace

void verify_schedule(const Schedule& schedule, const ScheduleTask& task,
                     const ChannelRules& rules) {
  check_stages(schedule, task.stages);
  check_micro_batches(schedule, task);
  check_transfers(schedule, task);
  check_windows(schedule, task);
  check_no_deadlock(schedule, rules);
}

void check_no_deadlock(const Schedule& schedule, const ChannelRules& rules) {
  ScheduleWalk walk(schedule, rules);
  if (walk.run()) return;
  std::string stuck;
  for (const Blocked& blocked : walk.blocked()) {
    stuck += (stuck.empty() ? "" : "; ") + describe(blocked);
  }
  CONVOY_FAIL(usage, "schedule: deadlock with channels of {}: {}", rules.capacity, stuck);
}

void check_same_collectives(const std::vector<Schedule>& replicas) {
  for (std::size_t replica = 1; replica < replicas.size(); ++replica) {
    CONVOY_CHECK(replicas[replica].workers() == replicas[0].workers(),
                 "schedule: {} workers on replica {}, {} on replica 0", replicas[replica].workers(),
                 replica, replicas[0].workers());
    for (int worker = 0; worker < replicas[0].workers(); ++worker) {
      check_same_line(replicas[0], replicas[replica], static_cast<int>(replica), worker);
    }
  }
}

}  // namespace convoy
