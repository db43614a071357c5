#include "engine/parallel/pipeline/instruction.h"

#include <algorithm>

#include "kernels/base/error.h"

namespace convoy {

std::string describe(const Instruction& instruction) {
  if (of_window(instruction.op))
    return fmt::format("{} {}", name(instruction.op), instruction.stage);
  return fmt::format("{} {}.{}", name(instruction.op), instruction.stage, instruction.micro_batch);
}

Instruction counterpart(const Instruction& instruction) {
  const auto [op, stage, micro_batch] = instruction;
  switch (op) {
    case ScheduleOp::send_activation:
      return {ScheduleOp::receive_activation, stage + 1, micro_batch};
    case ScheduleOp::receive_activation:
      return {ScheduleOp::send_activation, stage - 1, micro_batch};
    case ScheduleOp::send_gradient:
      return {ScheduleOp::receive_gradient, stage - 1, micro_batch};
    case ScheduleOp::receive_gradient:
      return {ScheduleOp::send_gradient, stage + 1, micro_batch};
    default:
      CONVOY_FAIL(internal, "schedule: {} is no transfer", describe(instruction));
  }
}

std::vector<int> stage_owners(const Schedule& schedule) {
  std::vector<int> owners;
  for (int worker = 0; worker < schedule.workers(); ++worker) {
    for (const Instruction& instruction : schedule.lines[worker]) {
      if (instruction.op != ScheduleOp::forward) continue;
      if (instruction.stage >= static_cast<int>(owners.size())) {
        owners.resize(instruction.stage + 1, -1);
      }
      owners[instruction.stage] = worker;
    }
  }
  return owners;
}

int live_micro_batches(const Schedule& schedule, int stage, bool until_weight) {
  const ScheduleOp end = until_weight ? ScheduleOp::backward_weight : ScheduleOp::backward_input;
  int live = 0, most = 0;
  for (const ScheduleLine& line : schedule.lines) {
    for (const Instruction& instruction : line) {
      if (instruction.stage != stage) continue;
      if (instruction.op == ScheduleOp::forward) most = std::max(most, ++live);
      if (instruction.op == end) --live;
    }
  }
  return most;
}

}  // namespace convoy
