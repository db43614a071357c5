#include "engine/train/times_teller.h"

namespace convoy {
namespace {

// The first step warms up memory and layouts.
constexpr std::int64_t kFirst = 2;
constexpr std::int64_t kLast = 4;

}  // namespace

void TimesTeller::before_step() {
  ++steps_;
  if (!wants_spans_ || told_spans_) return;
  if (steps_ == kFirst) runner_.keep_spans(true);
  if (steps_ == kLast + 1) runner_.keep_spans(false);
}

void TimesTeller::tell() {
  const WorkersEvent event = runner_.account();
  if (!event.workers.empty()) {
    observers_.tell([&](Observer& observer) { observer.on_workers(event); });
  }
  if (!wants_spans_ || told_spans_ || steps_ < kFirst) return;
  told_spans_ = true;
  runner_.keep_spans(false);
  const SpansEvent spans = runner_.take_spans();
  if (spans.steps.empty()) return;
  observers_.tell([&](Observer& observer) { observer.on_spans(spans); });
}

}  // namespace convoy
