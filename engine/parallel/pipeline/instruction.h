// What a worker of a pipeline does, as data: a schedule is a line of instructions per worker, made
// and proved before the run; the runner only interprets it.
//
//     RA 1.0  F 1.0  SA 1.0  RG 1.0  I 1.0  SG 1.0  W 1.0  AR 1  ST 1      `OP stage.micro-batch`
#pragma once

#include <string>
#include <vector>

namespace convoy {

/// The operations of a schedule, in the order of their names in `kOpNames`.
enum class ScheduleOp {
  receive_activation,  ///< RA s.k: the input of stage s, from stage s-1
  send_activation,     ///< SA s.k: the output of stage s, to stage s+1
  forward,             ///< F s.k
  receive_gradient,    ///< RG s.k: the gradient of stage s's output, from stage s+1
  send_gradient,       ///< SG s.k: the gradient of stage s's input, to stage s-1
  backward_input,      ///< I s.k: input gradients
  backward_weight,     ///< W s.k: weight gradients, added in ascending order of micro-batches
  all_reduce,          ///< AR s: begins the sum of stage s's gradients over the replicas
  step,                ///< ST s: waits for AR s, then updates stage s's weights
};

inline constexpr const char* kOpNames[] = {"RA", "SA", "F", "RG", "SG", "I", "W", "AR", "ST"};

/// One thing to do. AR and ST belong to a window, not to a micro-batch: theirs is 0.
struct Instruction {
  ScheduleOp op = ScheduleOp::forward;
  int stage = 0;
  int micro_batch = 0;

  bool operator==(const Instruction&) const = default;
};

using ScheduleLine = std::vector<Instruction>;

/// Line w is what worker w does, from the start of a window to its end.
struct Schedule {
  std::vector<ScheduleLine> lines;

  bool operator==(const Schedule&) const = default;
  int workers() const { return static_cast<int>(lines.size()); }
};

/// "RA", "F", ...
inline const char* name(ScheduleOp op) {
  return kOpNames[static_cast<int>(op)];
}
/// AR and ST, which have no micro-batch.
inline bool of_window(ScheduleOp op) {
  return op == ScheduleOp::all_reduce || op == ScheduleOp::step;
}
inline bool sends(ScheduleOp op) {
  return op == ScheduleOp::send_activation || op == ScheduleOp::send_gradient;
}
inline bool receives(ScheduleOp op) {
  return op == ScheduleOp::receive_activation || op == ScheduleOp::receive_gradient;
}

/// `F 2.0`, `AR 2`.
std::string describe(const Instruction& instruction);

/// The other half of a transfer: SA s.k and RA s+1.k, SG s.k and RG s-1.k. `internal` for others.
Instruction counterpart(const Instruction& instruction);

/// The worker whose line runs a stage's forward, for stages 0 to the highest one; -1 for none.
std::vector<int> stage_owners(const Schedule& schedule);

/// The most micro-batches of `stage` that are between their F and their I (`until_weight`: their
/// W) at one time on its worker's line.
int live_micro_batches(const Schedule& schedule, int stage, bool until_weight = false);

}  // namespace convoy
