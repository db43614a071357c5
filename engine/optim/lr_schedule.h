// The learning rate of a step as a pure function: nothing to save, nothing to get out of step.
#pragma once

#include <cstdint>
#include <string>

namespace convoy {

enum class LrScheduleKind { constant, cosine, step };

/// Linear warm-up from lr / warmup to lr over `warmup` steps, then
///   constant: lr;
///   cosine: lr * (1 + cos(pi * t)) / 2, t from 0 to 1 over the steps after the warm-up;
///   step: lr * 0.1^(number of thirds of those steps that have passed).
struct LrSchedule {
  LrScheduleKind kind = LrScheduleKind::constant;
  double lr = 0.1;
  std::int64_t warmup = 0;
  std::int64_t total_steps = 1;

  /// The rate of step `step`, which counts from 1.
  double at(std::int64_t step) const;
};

/// Reads "constant", "cosine", "step"; `usage` on anything else.
LrScheduleKind parse_lr_schedule(const std::string& text);

}  // namespace convoy
