#include "comm/progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "comm/clock.h"

namespace convoy {
namespace {

// Of the running mean of a step's time: a single slow step says little.
constexpr double kMeanOver = 2;  // seconds
constexpr double kLeastShare = 0.001, kMostShare = 0.5;

}  // namespace

const char* name(Activity activity) {
  switch (activity) {
    case Activity::starting:
      return "starting";
    case Activity::loading:
      return "loading";
    case Activity::computing:
      return "computing";
    case Activity::waiting:
      return "waiting";
    case Activity::evaluating:
      return "evaluating";
    case Activity::saving:
      return "saving";
    case Activity::finished:
      return "finished";
  }
  return "?";
}

const char* name(WaitIn what) {
  switch (what) {
    case WaitIn::collective:
      return "collective";
    case WaitIn::reduce:
      return "reduce";
    case WaitIn::gather:
      return "gather";
    case WaitIn::broadcast:
      return "broadcast";
    case WaitIn::barrier:
      return "barrier";
    case WaitIn::message:
      return "message";
  }
  return "?";
}

std::string to_text(const InstructionMark& mark) {
  const std::string_view op(mark.op.data(), mark.op[1] ? 2 : 1);
  if (mark.micro_batch < 0) return fmt::format("{} {}", op, mark.stage);
  return fmt::format("{} {}.{}", op, mark.stage, mark.micro_batch);
}

ProgressBoard::ProgressBoard() : since_(wall_now()) {}

void ProgressBoard::enter(Activity activity) {
  outer_.store(static_cast<int>(activity));
  activity_.store(static_cast<int>(activity));
  at_.store({});
  since_.store(wall_now());
  beat();
}

void ProgressBoard::begin_step(std::int64_t step) {
  step_.store(step);
  enter(Activity::computing);
}

void ProgressBoard::end_step(double busy_seconds) {
  const double before = step_seconds_.load();
  const double share = std::clamp(before / kMeanOver, kLeastShare, kMostShare);
  step_seconds_.store(before == 0 ? busy_seconds : before + share * (busy_seconds - before));
  beat();
}

void ProgressBoard::begin_instruction(const InstructionMark& mark) {
  at_.store(mark);
  beat();
}

void ProgressBoard::begin_wait(WaitIn what) {
  waits_.fetch_add(1);
  wait_in_.store(static_cast<int>(what));
  collective_.fetch_add(1);
  activity_.store(static_cast<int>(Activity::waiting));
  since_.store(wall_now());
}

void ProgressBoard::end_wait() {
  beat();
  if (waits_.fetch_sub(1) > 1) return;
  activity_.store(outer_.load());
  since_.store(wall_now());
}

Progress ProgressBoard::read() const {
  return {static_cast<Activity>(activity_.load()),
          step_.load(),
          collective_.load(),
          beats_.load(),
          since_.load(),
          step_seconds_.load(),
          static_cast<WaitIn>(wait_in_.load()),
          at_.load(),
          kind_.load()};
}

}  // namespace convoy
