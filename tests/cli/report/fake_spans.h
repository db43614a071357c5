// Boxes of two workers with two micro-batches, by hand: times are eighths of a second.
#pragma once

#include "engine/train/observer.h"

namespace convoy::cli {

inline Span fake_box(SpanTrack track, WorkerState state, ScheduleOp op, int stage, int micro_batch,
                     double begin, double end) {
  return {track, state, {op, stage, micro_batch}, begin / 8, end / 8};
}

inline Span fake_forward(int stage, int micro_batch, double begin) {
  return fake_box(SpanTrack::compute, WorkerState::forward, ScheduleOp::forward, stage, micro_batch,
                  begin, begin + 1);
}
inline Span fake_backward(int stage, int micro_batch, double begin) {
  return fake_box(SpanTrack::compute, WorkerState::backward_input, ScheduleOp::backward_input,
                  stage, micro_batch, begin, begin + 2);
}

/// Fill-drain of two stages; `begin` is when the step begins on the leader's clock, in eighths.
inline StepSpans fake_step(std::int64_t number, double begin = 0) {
  using enum ScheduleOp;
  WorkerSpans first{0, 0, {}, {}};
  first.measured = {fake_forward(0, 0, begin), fake_forward(0, 1, begin + 1),
                    fake_box(SpanTrack::receive, WorkerState::starved, receive_gradient, 0, 0,
                             begin + 2, begin + 5),
                    fake_backward(0, 0, begin + 5), fake_backward(0, 1, begin + 7)};
  first.predicted = {fake_forward(0, 0, 0), fake_forward(0, 1, 1), fake_backward(0, 0, 5),
                     fake_backward(0, 1, 7)};
  WorkerSpans second{1, 0, {}, {}};
  second.measured = {fake_box(SpanTrack::receive, WorkerState::starved, receive_activation, 1, 0,
                              begin, begin + 1),
                     fake_forward(1, 0, begin + 1), fake_forward(1, 1, begin + 2),
                     fake_backward(1, 0, begin + 3), fake_backward(1, 1, begin + 5)};
  second.predicted = {fake_forward(1, 0, 1), fake_forward(1, 1, 2), fake_backward(1, 0, 3),
                      fake_backward(1, 1, 5)};
  return {number, begin / 8, (begin + 9) / 8, {first, second}};
}

}  // namespace convoy::cli
