#include "engine/parallel/pipeline/worker_states.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace convoy {

double total(const StateSeconds& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

double bubble(const StateSeconds& seconds) {
  return at(seconds, WorkerState::starved) + at(seconds, WorkerState::transfer) +
         at(seconds, WorkerState::slot_full);
}

double StateClock::now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void StateClock::close(double end) {
  if (!running_) return;
  open_.end = end;
  at(seconds_, open_.state) += end - open_.begin;
  if (keeps_spans_ && end > open_.begin) spans_.push_back(open_);
}

void StateClock::enter(WorkerState state, const Instruction& instruction) {
  const double time = now();
  close(time);
  open_ = {.state = state, .instruction = instruction, .begin = time, .end = time};
  running_ = true;
}

void StateClock::split_last(WorkerState state, double seconds) {
  if (!running_) return;
  const double time = now();
  const double begin = std::max(open_.begin, time - std::max(seconds, 0.0));
  const Instruction instruction = open_.instruction;
  close(begin);
  open_ = {.state = state, .instruction = instruction, .begin = begin, .end = begin};
}

void StateClock::stop() {
  close(now());
  running_ = false;
}

std::vector<StateSpan> StateClock::take_spans() {
  return std::exchange(spans_, {});
}

}  // namespace convoy
