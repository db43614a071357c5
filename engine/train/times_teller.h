// Tells the observers of a run where its workers' time goes: sums after each epoch, and what
// happened when in a few early steps.
#pragma once

#include <cstdint>

#include "engine/train/observers.h"
#include "engine/train/settings.h"
#include "engine/train/step_runner.h"

namespace convoy {

class TimesTeller {
 public:
  /// Spans are kept where --trace or --report wants them.
  TimesTeller(StepRunner& runner, const Observers& observers, const Settings& settings)
      : runner_(runner),
        observers_(observers),
        wants_spans_(!settings.trace.empty() || !settings.report.empty()) {}

  void before_step();
  /// Collective: after each epoch and at the end. Nothing where there are no several workers.
  void tell();

 private:
  StepRunner& runner_;
  const Observers& observers_;
  const bool wants_spans_;
  std::int64_t steps_ = 0;  // begun
  bool told_spans_ = false;
};

}  // namespace convoy
