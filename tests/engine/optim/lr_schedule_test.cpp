// Learning-rate schedules against their closed forms.
#include "engine/optim/lr_schedule.h"

#include <cmath>
#include <numbers>

#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

bool close(double actual, double expected) {
  return std::abs(actual - expected) <= 1e-15;
}

}  // namespace

TEST_CASE("lr schedule: the warm-up is linear and ends at the full rate") {
  for (auto kind : {LrScheduleKind::constant, LrScheduleKind::cosine, LrScheduleKind::step}) {
    const LrSchedule schedule{kind, 0.8, 4, 100};
    for (int step = 1; step <= 4; ++step) CHECK(close(schedule.at(step), 0.2 * step));
    CHECK(close(schedule.at(5), 0.8));
  }
}

TEST_CASE("lr schedule: constant") {
  const LrSchedule schedule{LrScheduleKind::constant, 0.1, 0, 10};
  for (std::int64_t step : {1, 5, 10, 1000}) CHECK(schedule.at(step) == 0.1);
}

TEST_CASE("lr schedule: cosine") {
  const LrSchedule schedule{LrScheduleKind::cosine, 0.4, 2, 10};
  for (int done = 0; done <= 8; ++done) {
    CHECK(close(schedule.at(3 + done), 0.2 * (1 + std::cos(std::numbers::pi * done / 8))));
  }
  CHECK(close(schedule.at(7), 0.2));
  CHECK(close(schedule.at(500), 0));
}

TEST_CASE("lr schedule: steps at thirds") {
  const LrSchedule schedule{LrScheduleKind::step, 1, 1, 10};
  const double expected[] = {1, 1, 1, 1, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01, 0.01, 0.01};
  for (int step = 1; step <= 12; ++step) CHECK(close(schedule.at(step), expected[step - 1]));
}

TEST_CASE("lr schedule: a warm-up that fills the run") {
  const LrSchedule schedule{LrScheduleKind::cosine, 1, 10, 10};
  CHECK(close(schedule.at(10), 1));
  CHECK(std::isfinite(schedule.at(11)));
}

TEST_CASE("lr schedule: names") {
  CHECK(parse_lr_schedule("constant") == LrScheduleKind::constant);
  CHECK(parse_lr_schedule("cosine") == LrScheduleKind::cosine);
  CHECK(parse_lr_schedule("step") == LrScheduleKind::step);
  testing::expect_error(ErrorKind::usage, {"'linear'", "constant, cosine, step"},
                        [] { parse_lr_schedule("linear"); });
}

}  // namespace convoy::testing
