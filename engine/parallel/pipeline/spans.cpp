#include "engine/parallel/pipeline/spans.h"

#include <fmt/format.h>

namespace convoy {
namespace {

constexpr SpanTrack track_of(WorkerState state) {
  switch (state) {
    case WorkerState::starved:
    case WorkerState::transfer:
      return SpanTrack::receive;
    case WorkerState::slot_full:
      return SpanTrack::send;
    case WorkerState::all_reduce:
      return SpanTrack::collectives;
    default:
      return SpanTrack::compute;
  }
}

constexpr WorkerState state_of(ScheduleOp op) {
  switch (op) {
    case ScheduleOp::forward:
      return WorkerState::forward;
    case ScheduleOp::backward_input:
      return WorkerState::backward_input;
    case ScheduleOp::backward_weight:
      return WorkerState::backward_weight;
    case ScheduleOp::step:
      return WorkerState::optimizer;
    case ScheduleOp::all_reduce:
      return WorkerState::all_reduce;
    case ScheduleOp::receive_activation:
    case ScheduleOp::receive_gradient:
      return WorkerState::starved;
    case ScheduleOp::send_activation:
    case ScheduleOp::send_gradient:
      return WorkerState::slot_full;
  }
  return WorkerState::host;
}

const char* state_name(WorkerState state) {
  return kStateNames[static_cast<int>(state)];
}

// An instruction tells no more than the state where the state is of no instruction.
bool has_instruction(const Span& span) {
  return span.state != WorkerState::loader && span.state != WorkerState::host;
}

}  // namespace

std::string kind_of(const Span& span) {
  switch (span.state) {
    case WorkerState::forward:
    case WorkerState::backward_input:
    case WorkerState::backward_weight:
      return name(span.instruction.op);
    case WorkerState::optimizer:
      return "ST";
    default:
      return state_name(span.state);
  }
}

std::string describe(const Span& span) {
  if (!has_instruction(span)) return state_name(span.state);
  std::string what = describe(span.instruction);
  if (what.starts_with(kind_of(span) + " ")) return what;
  return fmt::format("{} {}", state_name(span.state), what);
}

std::vector<Span> spans_of(const std::vector<StateSpan>& states, double shift) {
  std::vector<Span> spans;
  for (const StateSpan& state : states) {
    if (state.state == WorkerState::host) continue;
    spans.push_back({.track = track_of(state.state),
                     .state = state.state,
                     .instruction = state.instruction,
                     .begin = state.begin + shift,
                     .end = state.end + shift});
  }
  return spans;
}

std::vector<Span> spans_of(const Timeline& timeline, int worker) {
  std::vector<Span> spans;
  for (const ScheduleSpan& span : timeline.spans.at(static_cast<std::size_t>(worker))) {
    if (span.end <= span.begin) continue;
    const WorkerState state = state_of(span.instruction.op);
    spans.push_back({.track = track_of(state),
                     .state = state,
                     .instruction = span.instruction,
                     .begin = span.begin,
                     .end = span.end});
  }
  return spans;
}

}  // namespace convoy
