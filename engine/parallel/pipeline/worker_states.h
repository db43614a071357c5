// What a pipeline worker's time goes to. A worker is always in exactly one state, so the seconds of
// all states are its wall time: measured by the runner, forecast by the simulator, shown side by
// side.
//
//     compute: forward, backward_input, backward_weight, recompute, optimizer
//     bubble:  starved (the peer has not begun to send), transfer (it has), slot_full
//     rest:    all_reduce (exposed), loader, host
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/parallel/pipeline/instruction.h"

namespace convoy {

/// In the order of their names in `kStateNames`.
enum class WorkerState {
  forward,
  backward_input,  ///< or both halves of backward, where they run as one
  backward_weight,
  recompute,
  optimizer,
  starved,     ///< waits for a message whose sender has not begun to send it
  transfer,    ///< waits for a message on its way
  slot_full,   ///< waits for room to send
  all_reduce,  ///< waits for gradients to be added over the replicas
  loader,      ///< waits for images
  host,        ///< all else
};

inline constexpr int kWorkerStates = 11;
inline constexpr const char* kStateNames[kWorkerStates] = {
    "forward",  "backward_input", "backward_weight", "recompute", "optimizer", "starved",
    "transfer", "slot_full",      "all_reduce",      "loader",    "host"};

/// Seconds in each state.
using StateSeconds = std::array<double, kWorkerStates>;

inline double& at(StateSeconds& seconds, WorkerState state) {
  return seconds[static_cast<std::size_t>(state)];
}
inline double at(const StateSeconds& seconds, WorkerState state) {
  return seconds[static_cast<std::size_t>(state)];
}
/// Of all states: the wall time.
double total(const StateSeconds& seconds);
/// Starved, transfer and slot_full.
double bubble(const StateSeconds& seconds);

/// A time spent in one state for one instruction; seconds of the steady clock.
struct StateSpan {
  WorkerState state = WorkerState::host;
  Instruction instruction = {};
  double begin = 0;
  double end = 0;
};

/// One step of one worker, or the sum of several.
struct WorkerAccount {
  int worker = 0;  ///< rank among all workers
  int replica = 0;
  std::vector<int> stages;
  std::int64_t steps = 0;
  StateSeconds measured = {};
  StateSeconds predicted = {};  ///< by the simulator, from the stages' own times and the links'
  double peak_bytes = 0;
  double predicted_peak_bytes = 0;
};

/// Divides a worker's time among the states. Used by the worker's thread.
class StateClock {
 public:
  /// From now on the worker is in `state` because of `instruction`; the state before ends.
  void enter(WorkerState state, const Instruction& instruction = {});
  /// The last part of the state before belongs to `state`: what was waited for tells afterwards
  /// that its sender began `seconds` before now.
  void split_last(WorkerState state, double seconds);
  /// Ends the step.
  void stop();

  const StateSeconds& seconds() const { return seconds_; }
  /// Spans since the last take; kept only while `keep_spans`.
  std::vector<StateSpan> take_spans();
  void keep_spans(bool on) { keeps_spans_ = on; }
  void clear() { seconds_ = {}; }
  /// Seconds of the steady clock.
  static double now();

 private:
  void close(double end);

  StateSeconds seconds_ = {};
  StateSpan open_ = {};
  bool running_ = false;
  bool keeps_spans_ = false;
  std::vector<StateSpan> spans_;
};

}  // namespace convoy
