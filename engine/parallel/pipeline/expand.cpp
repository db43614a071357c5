#include "engine/parallel/pipeline/expand.h"

#include <algorithm>
#include <map>

#include "kernels/base/error.h"

namespace convoy {
namespace {

class Expansion {
 public:
  Expansion(const Schedule& compute, const ExpandOptions& options)
      : owners_(stage_owners(compute)), options_(options) {}

  ScheduleLine line(const ScheduleLine& compute) {
    line_.clear();
    std::map<int, int> open;  // W that each stage still has to do
    for (const auto& [op, stage, k] : compute) open[stage] += op == ScheduleOp::backward_weight;
    for (const Instruction& instruction : compute) {
      add(instruction);
      const auto [op, stage, k] = instruction;
      if (op == ScheduleOp::backward_weight && --open[stage] == 0) {
        line_.push_back({ScheduleOp::all_reduce, stage, 0});
      }
    }
    for (const auto& [stage, none] : open) line_.push_back({ScheduleOp::step, stage, 0});
    return line_;
  }

 private:
  // Whether a tensor between `stage` and its neighbour crosses workers.
  bool crosses(int stage, int neighbour) const {
    if (neighbour < 0 || neighbour >= static_cast<int>(owners_.size())) return false;
    return owners_[stage] != owners_[neighbour];
  }

  void transfer(ScheduleOp op, int stage, int neighbour, int k) {
    if (crosses(stage, neighbour)) line_.push_back({op, stage, k});
  }

  void add(const Instruction& instruction) {
    const auto [op, stage, k] = instruction;
    if (op == ScheduleOp::forward) transfer(ScheduleOp::receive_activation, stage, stage - 1, k);
    if (op == ScheduleOp::backward_input) {
      transfer(ScheduleOp::receive_gradient, stage, stage + 1, k);
    }
    line_.push_back(instruction);
    if (op == ScheduleOp::forward) transfer(ScheduleOp::send_activation, stage, stage + 1, k);
    const ScheduleOp last =
        options_.gradient_after_weight ? ScheduleOp::backward_weight : ScheduleOp::backward_input;
    if (op == last) transfer(ScheduleOp::send_gradient, stage, stage - 1, k);
  }

  std::vector<int> owners_;
  ExpandOptions options_;
  ScheduleLine line_;
};

int micro_batches_end(const Schedule& schedule) {
  int end = 0;
  for (const ScheduleLine& line : schedule.lines) {
    for (const Instruction& instruction : line) end = std::max(end, instruction.micro_batch + 1);
  }
  return end;
}

}  // namespace

Schedule expand(const Schedule& compute, const ExpandOptions& options) {
  Expansion expansion(compute, options);
  Schedule schedule;
  for (const ScheduleLine& line : compute.lines) schedule.lines.push_back(expansion.line(line));
  return schedule;
}

Schedule join_windows(const std::vector<Schedule>& windows) {
  Schedule joined;
  int first = 0;
  for (const Schedule& window : windows) {
    if (joined.lines.empty()) joined.lines.resize(window.lines.size());
    CONVOY_CHECK(joined.workers() == window.workers(),
                 "schedule: a window for {} workers after one for {}, expected as many",
                 window.workers(), joined.workers());
    for (int worker = 0; worker < window.workers(); ++worker) {
      for (Instruction instruction : window.lines[worker]) {
        if (!of_window(instruction.op)) instruction.micro_batch += first;
        joined.lines[worker].push_back(instruction);
      }
    }
    first += micro_batches_end(window);
  }
  return joined;
}

}  // namespace convoy
