#include "comm/watchdog_judge.h"

namespace convoy {
namespace {

constexpr double kEchoWait = 0.6;      // a `communication` failure may be the echo of a death
constexpr double kSlowNoteEvery = 60;  // seconds
constexpr int kSlowSteps = 3;          // in a row
constexpr double kCountEvery = 1;      // seconds: no more of them are looked at

}  // namespace

std::optional<std::string> SlowNotes::look(const std::optional<SlowWorker>& slow, double now) {
  if (!slow || slow->worker != worker_) {
    worker_ = slow ? slow->worker : -1;
    count_ = 0;
    step_ = -1;
  }
  if (!slow || slow->step == step_ || now < counted_ + kCountEvery) return {};
  step_ = slow->step;
  counted_ = now;
  if (++count_ < kSlowSteps || now < next_) return {};
  next_ = now + kSlowNoteEvery;
  return slow->text;
}

void Judge::take(const Failed& failure, double now) {
  if (reported_) return;
  reported_ = failure;
  reported_at_ = now;
}

std::optional<Failed> Judge::look(const std::vector<ProcessState>& processes,
                                  const JudgeTime& time) {
  const bool echo = reported_ && reported_->error.kind() == ErrorKind::communication &&
                    time.now - reported_at_ < kEchoWait;
  if (reported_ && !echo) return reported_;
  if (const auto failure = find_failure(processes, time)) return Failed{*failure, -1};
  tell_notes(processes, time);
  return {};
}

void Judge::tell_notes(const std::vector<ProcessState>& processes, const JudgeTime& time) {
  if (!note_) return;
  const auto warning = find_warning(processes, time);
  if (warning && !warned_) note_(*warning);
  warned_ = warning.has_value();
  const auto slow = slow_.look(find_slow(processes), time.now);
  if (slow) note_(*slow);
}

}  // namespace convoy
