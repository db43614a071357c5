// Walks all lines of a schedule together, as far as bounded channels allow. A channel has one
// writer and one reader and the lines are fixed, so timing cannot matter: one greedy walk that
// reaches the end proves that no run can hang; the simulator takes its order from the same walk.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "engine/parallel/pipeline/instruction.h"

namespace convoy {

/// How messages wait between two workers.
struct ChannelRules {
  int capacity = 2;  ///< messages a channel holds (posted receives); 0: a send waits for
                     ///< its receive to begin
  bool per_worker_pair = false;  ///< one channel for all that one worker sends another, instead of
                                 ///< one for each stage edge and direction: can deadlock
};

/// An instruction that cannot run, and the one that it waits for.
struct Blocked {
  int worker;
  int position;  ///< of `at` on the worker's line, from 0
  Instruction at;
  Instruction awaited;
  int awaited_worker;  ///< -1: no line has it
};

class ScheduleWalk {
 public:
  using Visit = std::function<void(int worker, const Instruction& instruction)>;

  /// `schedule` is kept by reference. `usage` for a negative capacity.
  ScheduleWalk(const Schedule& schedule, const ChannelRules& rules);

  /// Runs all that can run, each instruction after those that it depends on. True at the end of all
  /// lines.
  bool run(const Visit& visit = [](int, const Instruction&) {});
  /// After run: what the workers that did not reach the end wait for.
  std::vector<Blocked> blocked() const;

 private:
  bool advance(int worker, const Visit& visit);
  bool pass(int worker, const Instruction& instruction, const Visit& visit);
  bool meet(const Instruction& send, const Visit& visit);
  const Instruction* current(int worker) const;
  std::size_t channel_of(const Instruction& transfer) const;
  int worker_of(const Instruction& instruction) const;
  Instruction awaited_by(const Instruction& instruction) const;

  const Schedule& schedule_;
  ChannelRules rules_;
  std::vector<int> owners_;
  std::vector<std::size_t> positions_;
  std::vector<std::deque<Instruction>> channels_;  // sends that were not received yet
};

/// `worker 0 at SA 0.2 (instruction 6) waits for RA 1.1 of worker 1`.
std::string describe(const Blocked& blocked);

}  // namespace convoy
