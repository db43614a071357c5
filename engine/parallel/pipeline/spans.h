// What workers did when, as boxes on tracks: measured by a runner, forecast by the simulator, drawn
// by traces and reports. A worker has one track each for computing, sending, receiving and
// collectives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/parallel/pipeline/instruction.h"
#include "engine/parallel/pipeline/simulate.h"
#include "engine/parallel/pipeline/worker_states.h"

namespace convoy {

/// In the order of their names in `kTrackNames`.
enum class SpanTrack { compute, send, receive, collectives };

inline constexpr const char* kTrackNames[] = {"compute", "send", "receive", "collectives"};

/// One box. A wait (starved, transfer, slot_full, all_reduce) stands on the track of what is waited
/// for; what moves while the worker computes stands there too, its state is `transfer` for messages
/// and `all_reduce` for collectives.
struct Span {
  SpanTrack track = SpanTrack::compute;
  WorkerState state = WorkerState::host;
  Instruction instruction = {};
  double begin = 0;  ///< seconds: measured on the leader's clock, forecast from the step's begin
  double end = 0;
};

/// One worker in one step.
struct WorkerSpans {
  int worker = 0;  ///< rank among all workers
  int replica = 0;
  std::vector<Span> measured;
  std::vector<Span> predicted;  ///< empty: no forecast
};

/// One optimizer step of all workers.
struct StepSpans {
  std::int64_t step = 0;
  double begin = 0;  ///< on the leader's clock, as the measured spans
  double end = 0;
  std::vector<WorkerSpans> workers;
};

/// "F", "I", "W", "recompute", "step", "wait RA", ...: what a box shows, without numbers.
std::string kind_of(const Span& span);
/// `F 1.0`, `recompute 1.0`, `starved RA 1.0`, `loader`: the whole of it.
std::string describe(const Span& span);

/// The spans of a worker's StateClock, on their tracks; time spent in the host's own work is left
/// out. `shift` is added to all times.
std::vector<Span> spans_of(const std::vector<StateSpan>& states, double shift = 0);
/// The forecast row of one worker.
std::vector<Span> spans_of(const Timeline& timeline, int worker);

/// For the way between processes: text without loss, and back. `internal` for other text.
std::string write_accounts(const std::vector<WorkerAccount>& accounts);
std::vector<WorkerAccount> read_accounts(const std::string& text);
std::string write_spans(const std::vector<WorkerSpans>& workers);
std::vector<WorkerSpans> read_spans(const std::string& text);

}  // namespace convoy
