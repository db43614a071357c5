// The walk with bounded channels: the facts that are known of the four schedules, and what is said
// of a table that is stuck.
#include <fmt/format.h>

#include "engine/parallel/pipeline/schedule_text.h"
#include "tests/engine/parallel/pipeline/schedule_cases.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

bool reaches_end(const Schedule& schedule, const ChannelRules& rules) {
  ScheduleWalk walk(schedule, rules);
  const bool ended = walk.run();
  CHECK(walk.blocked().empty() == ended);
  return ended;
}

bool reaches_end(const char* name, int p, int m, int v, const ChannelRules& rules) {
  return reaches_end(make_schedule(request_of(name, p, m, v)), rules);
}

TEST_CASE("Without posted receives 1f1b and zb-h1 deadlock, fill-drain does not") {
  for (int p = 2; p <= 6; ++p) {
    for (int m = 1; m <= 8; ++m) {
      INFO("p " << p << ", m " << m);
      CHECK(reaches_end("fill-drain", p, m, 1, {0}));
      CHECK(reaches_end("1f1b", p, m, 1, {0}) == (m < 2));
      CHECK(reaches_end("zb-h1", p, m, 1, {0}) == (m < 2));
    }
  }
}

TEST_CASE("One channel per pair of workers deadlocks interleaved schedules") {
  CHECK(reaches_end("interleaved", 2, 4, 2, {1}));
  CHECK_FALSE(reaches_end("interleaved", 2, 4, 2, {1, true}));
  CHECK(reaches_end("1f1b", 4, 4, 1, {1, true}));
}

TEST_CASE("A deadlock names each blocked instruction and whom it waits for") {
  const Schedule crossed = parse_schedule(
      "F 0.0  SA 0.0  F 0.1  SA 0.1  RG 0.0  I 0.0  W 0.0  RG 0.1  I 0.1  W 0.1  AR 0  ST 0\n"
      "RG 1.0  RA 1.0  F 1.0  SA 1.0  I 1.0  SG 1.0  RA 1.1  F 1.1  SA 1.1  RG 1.1  I 1.1  SG 1.1"
      "  W 1.0  W 1.1  AR 1  ST 1\n"
      "RA 2.0  F 2.0  I 2.0  SG 2.0  W 2.0  RA 2.1  F 2.1  I 2.1  SG 2.1  W 2.1  AR 2  ST 2\n");
  check_error([&] { check_no_deadlock(crossed, {1}); }, ErrorKind::usage,
              "schedule: deadlock with channels of 1: "
              "worker 0 at SA 0.1 (instruction 4) waits for RA 1.0 of worker 1; "
              "worker 1 at RG 1.0 (instruction 1) waits for SG 2.0 of worker 2; "
              "worker 2 at RA 2.0 (instruction 1) waits for SA 1.0 of worker 1");
}

TEST_CASE("A message behind another one does not count as there") {
  expect_error(
      ErrorKind::usage, {"worker 1 at RA 1.1 (instruction 1) waits for RA 1.0 of worker 1"}, [] {
        check_no_deadlock(parse_schedule("SA 0.0  SA 0.1  F 0.0\nRA 1.1  RA 1.0  F 1.0\n"), {2});
      });
}

TEST_CASE("A receive that nobody sends, and a send that nobody receives, are named") {
  expect_error(ErrorKind::usage,
               {"worker 0 at RG 0.0 (instruction 2) waits for SG 1.0 which no worker has"},
               [] { check_no_deadlock(parse_schedule("F 0.0  RG 0.0\nF 1.0\n"), {1}); });
  expect_error(ErrorKind::usage, {"worker 0 at SG 0.0 (instruction 1) waits for RG -1.0"},
               [] { check_no_deadlock(parse_schedule("SG 0.0  F 0.0\nF 1.0\n"), {0}); });
  expect_error(ErrorKind::usage, {"channels of -1 messages"},
               [] { check_no_deadlock(parse_schedule("F 0.0\n"), {-1}); });
}

}  // namespace
}  // namespace convoy::testing
