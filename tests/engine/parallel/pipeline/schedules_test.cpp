// The generators against golden tables written from the published rules, live micro-batches against
// closed forms, and every small shape against the verifier.
#include "engine/parallel/pipeline/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "engine/parallel/pipeline/expand.h"
#include "engine/parallel/pipeline/schedule_text.h"
#include "tests/engine/parallel/pipeline/schedule_cases.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

std::string read(const std::string& path) {
  std::ifstream file(path);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("Schedules equal the golden tables") {
  for (const NamedSchedule& named : kSchedules) {
    std::string tables;
    const int v = named.several_stages ? 2 : 1;
    for (int p : {2, 3, 4}) {
      for (int m : {1, 3, 6}) {
        tables +=
            fmt::format("# {}, {} workers, {} stages, {} micro-batches\n", named.name, p, v * p, m);
        tables += write_schedule(make_schedule(request_of(named.name, p, m, v)));
      }
    }
    INFO("renew with tests/golden/make_schedules.py");
    CHECK(tables == read(std::string(CONVOY_GOLDEN) + "/schedule_" + named.name + ".txt"));
  }
}

TEST_CASE("Every small shape of every schedule is proved with channels of one message") {
  for (const NamedSchedule& named : kSchedules) {
    for (int p = 1; p <= 5; ++p) {
      for (int m = 1; m <= 9; ++m) {
        for (int v = 1; v <= (named.several_stages ? 3 : 1); ++v) {
          ScheduleRequest request = request_of(named.name, p, m, v);
          for (bool after : {false, !named.weights_postponed}) {
            request.gradient_after_weight = after;
            INFO(named.name << ", p " << p << ", m " << m << ", v " << v);
            CHECK_NOTHROW(verify_schedule(make_schedule(request), task_of(p * v, m), {1}));
          }
        }
      }
    }
  }
}

TEST_CASE("One worker trains one micro-batch after the other") {
  for (const char* name : {"1f1b", "interleaved", "zb-h1"}) {
    CHECK(write_schedule(make_schedule(request_of(name, 1, 2))) ==
          "F 0.0  I 0.0  W 0.0  F 0.1  I 0.1  W 0.1  AR 0  ST 0\n");
  }
}

TEST_CASE("Live micro-batches follow the closed forms") {
  auto live = [](const char* name, int p, int m, int stage) {
    return live_micro_batches(make_schedule(request_of(name, p, m)), stage);
  };
  for (int p = 1; p <= 5; ++p) {
    for (int m = 1; m <= 8; ++m) {
      const Schedule zero_bubble = make_schedule(request_of("zb-h1", p, m));
      for (int r = 0; r < p; ++r) {
        INFO("p " << p << ", m " << m << ", r " << r);
        CHECK(live("fill-drain", p, m, r) == m);
        CHECK(live("1f1b", p, m, r) == std::min(p - r, m));
        CHECK(live_micro_batches(zero_bubble, r, true) == std::min(p, m));
      }
    }
  }
}

TEST_CASE("Live micro-batches are the most at any time") {
  const Schedule schedule = parse_schedule("F 0.0 F 0.1 I 0.0 I 0.1 F 0.2 I 0.2 W 0.0 W 0.1 W 0.2");
  CHECK(live_micro_batches(schedule, 0) == 2);
  CHECK(live_micro_batches(schedule, 0, true) == 3);
}

// Of all stages of a worker together, in stages; a worker's share of the network is v of them.
int live_stages(const ScheduleLine& line) {
  int live = 0, most = 0;
  for (const Instruction& instruction : line) {
    if (instruction.op == ScheduleOp::forward) most = std::max(most, ++live);
    if (instruction.op == ScheduleOp::backward_input) --live;
  }
  return most;
}

TEST_CASE("Interleaved workers hold the stages of the closed form") {
  for (int p = 1; p <= 4; ++p) {
    for (int v = 1; v <= 3; ++v) {
      for (int m : {p, 2 * p, 4 * p}) {
        const Schedule schedule = make_schedule(request_of("interleaved", p, m, v));
        for (int r = 0; r < p; ++r) {
          INFO("p " << p << ", v " << v << ", m " << m << ", r " << r);
          const int expected = (v - 1) * p + 2 * (p - 1 - r) + 1;
          CHECK(live_stages(schedule.lines[r]) == std::min(expected, m * v));
        }
      }
    }
  }
}

TEST_CASE("1f1b takes a warm-up of its own") {
  ScheduleRequest request = request_of("1f1b", 4, 16);
  request.warm_up = {6, 4, 2, 0};
  const Schedule schedule = make_schedule(request);
  CHECK_NOTHROW(verify_schedule(schedule, task_of(4, 16), {2}));
  for (int r = 0; r < 4; ++r) CHECK(live_micro_batches(schedule, r) == 7 - 2 * r);
}

TEST_CASE("Micro-batches keep their ids where some are struck out") {
  ScheduleRequest request = request_of("fill-drain", 1, 1);
  request.micro_batches = {0, 2};
  CHECK(write_schedule(make_schedule(request)) ==
        "F 0.0  F 0.2  I 0.0  W 0.0  I 0.2  W 0.2  AR 0  ST 0\n");
}

TEST_CASE("Windows are joined in order") {
  const Schedule joined = join_windows(
      {make_schedule(request_of("1f1b", 2, 2)), make_schedule(request_of("1f1b", 2, 1))});
  CHECK_NOTHROW(verify_schedule(joined, {2, {{0, 1}, {2}}}, {1}));
  expect_error(ErrorKind::usage, {"window for 1 workers after one for 2"}, [] {
    join_windows(
        {make_schedule(request_of("1f1b", 2, 1)), make_schedule(request_of("1f1b", 1, 1))});
  });
}

TEST_CASE("Requests that cannot be met are refused") {
  auto refused = [](const char* part, const std::function<void(ScheduleRequest&)>& change) {
    ScheduleRequest request = request_of("1f1b", 2, 2);
    change(request);
    expect_error(ErrorKind::usage, {part}, [&] { make_schedule(request); });
  };
  refused("'2f2b' is none, expected one of fill-drain, 1f1b, interleaved, zb-h1",
          [](auto& request) { request.name = "2f2b"; });
  refused("0 workers", [](auto& request) { request.workers = 0; });
  refused("0 stages a worker", [](auto& request) { request.stages_per_worker = 0; });
  refused("1f1b has one stage a worker, not 2",
          [](auto& request) { request.stages_per_worker = 2; });
  refused("no micro-batch", [](auto& request) { request.micro_batches.clear(); });
  refused("micro-batch 1 after 1,", [](auto& request) { request.micro_batches = {1, 1}; });
  refused("micro-batch -1,", [](auto& request) { request.micro_batches = {-1, 0}; });
  refused("1 warm-ups, expected one for each of 2 workers",
          [](auto& request) { request.warm_up = {1}; });
  refused("warm-up of -1", [](auto& request) { request.warm_up = {0, -1}; });
  refused("zb-h1 postpones W", [](auto& request) {
    request.name = "zb-h1";
    request.gradient_after_weight = true;
  });
  refused("zb-h1 has no warm-up", [](auto& request) {
    request.name = "zb-h1";
    request.warm_up = {1, 0};
  });
}

}  // namespace
}  // namespace convoy::testing
