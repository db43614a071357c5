#include "engine/optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/base/error.h"

namespace convoy {

double LrSchedule::at(std::int64_t step) const {
  if (step <= warmup) return lr * static_cast<double>(step) / static_cast<double>(warmup);
  const auto length = static_cast<double>(std::max<std::int64_t>(total_steps - warmup, 1));
  const double t = std::clamp(static_cast<double>(step - 1 - warmup) / length, 0.0, 1.0);
  switch (kind) {
    case LrScheduleKind::constant:
      return lr;
    case LrScheduleKind::cosine:
      return lr * (1 + std::cos(std::numbers::pi * t)) / 2;
    case LrScheduleKind::step:
      return lr * std::pow(0.1, std::min(std::floor(3 * t), 2.0));
  }
  return lr;
}

LrScheduleKind parse_lr_schedule(const std::string& text) {
  if (text == "constant") return LrScheduleKind::constant;
  if (text == "cosine") return LrScheduleKind::cosine;
  if (text == "step") return LrScheduleKind::step;
  CONVOY_FAIL(usage, "lr-schedule: '{}' is none of constant, cosine, step", text);
}

}  // namespace convoy
