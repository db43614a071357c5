// Memory of a worker, counted by hand, and the costs of stages.
#include "engine/parallel/pipeline/worker_memory.h"

#include "engine/parallel/pipeline/schedule_text.h"
#include "tests/engine/parallel/pipeline/schedule_cases.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

// Two stages; an image keeps 100 bytes for I, then 30 for W, and 7 more while I runs; 10 travel.
MemoryTask two_stages(const std::vector<std::int64_t>& images, int slots) {
  MemoryTask task;
  task.costs.resize(2);
  for (StageCost& cost : task.costs) {
    cost.times = {{1, {1, 1, 1}}};
    cost.memory = {1000, 500, 100, 30, 7, 10, 10};
  }
  task.costs[0].memory.input_bytes = task.costs[1].memory.output_bytes = 0;
  task.images = images;
  task.slots = slots;
  return task;
}

TEST_CASE("Kept activations, I, W, slots and sends make up the peak") {
  const MemoryTask task = two_stages({4, 4, 3}, 2);
  const Schedule schedule = make_schedule(request_of("1f1b", 2, 3));
  const std::vector<MemoryPeak> peaks = worst_memory(schedule, task);
  // Worker 0: 2 slots of 40 for gradients, two micro-batches of 4 images live, their two messages.
  CHECK(peaks[0].fixed_bytes == 1000 + 500 + 2 * 40);
  CHECK(peaks[0].bytes == 1580 + 800 + 2 * 40 + 4 * 7);
  CHECK(describe(peaks[0].at) == "I 0.0");
  // Worker 1: one micro-batch live; the gradients of the one before are still on their way.
  CHECK(peaks[1].bytes == 1580 + 400 + 40 + 4 * 7);
  CHECK(describe(peaks[1].at) == "I 1.1");
}

TEST_CASE("Fill-drain holds every micro-batch, zb-h1 what its open W need") {
  const MemoryTask task = two_stages({1, 1, 1, 1, 1, 1}, 1);
  auto peak = [&](const char* name, int worker) {
    const auto peaks = worst_memory(make_schedule(request_of(name, 2, 6)), task);
    return peaks[worker].bytes - peaks[worker].fixed_bytes;
  };
  CHECK(peak("fill-drain", 0) == 6 * 100 + 10 + 7);
  CHECK(peak("fill-drain", 1) == 6 * 100 + 7);
  CHECK(peak("1f1b", 1) == 100 + 10 + 7);
  CHECK(peak("zb-h1", 1) == 100 + 30 + 10 + 7);
}

TEST_CASE("A worker of several stages counts them all and shares the workspace") {
  const Schedule schedule = make_schedule(request_of("interleaved", 1, 1, 2));
  const MemoryPeak peak = worst_memory(schedule, two_stages({2}, 2))[0];
  CHECK(peak.fixed_bytes == 2 * 1000 + 500);
  CHECK(peak.bytes == 2500 + 2 * 200 + 2 * 7);
  CHECK(describe(peak.at) == "I 1.0");
}

TEST_CASE("A worker over its cap is named with need and cap") {
  const Schedule schedule = make_schedule(request_of("1f1b", 2, 3));
  const MemoryTask task = two_stages({4, 4, 3}, 2);
  CHECK_NOTHROW(check_memory(schedule, task, {2488, 2048}));
  CHECK_NOTHROW(check_memory(schedule, task, {0, 0}));
  check_error(
      [&] {
        check_memory(schedule, task, {0, 2047});
      },
      ErrorKind::resource,
      "schedule: worker 1 needs 2048 bytes at I 1.1 (1580 of them for parameters, "
      "workspace and receives), its cap is 2047");
  expect_error(ErrorKind::usage, {"1 memory caps for 2 workers"},
               [&] { check_memory(schedule, task, {0}); });
}

TEST_CASE("A simulated worker needs at most what the verifier counts") {
  for (const NamedSchedule& named : kSchedules) {
    for (int slots : {1, 2}) {
      const MemoryTask memory = two_stages({2, 2, 2, 1, 1}, slots);
      const Schedule schedule = make_schedule(request_of(named.name, 2, 5));
      const auto worst = worst_memory(schedule, memory);
      for (double latency : {0.0, 0.5, 50.0}) {
        const Timeline timeline =
            simulate(schedule, {memory.costs, memory.images, {latency, 0}, 0, slots});
        for (int worker : {0, 1}) {
          INFO(named.name << ", latency " << latency << ", worker " << worker);
          CHECK(timeline.memory[worker].bytes <= worst[worker].bytes);
        }
      }
    }
  }
  // Without latency a message is gone when the next instruction runs.
  const MemoryTask memory = two_stages({1, 1}, 2);
  const Timeline timeline =
      simulate(make_schedule(request_of("1f1b", 2, 2)), {memory.costs, memory.images, {}, 0, 2});
  CHECK(timeline.memory[0].bytes - timeline.memory[0].fixed_bytes == 200 + 10);
}

TEST_CASE("Times are measured, or lie on the line between two measurements") {
  StageCost cost;
  cost.times = {{4, {8, 4, 2}}, {8, {12, 8, 2}}};
  CHECK(times_at(cost, 4).forward == 8);
  CHECK(times_at(cost, 6).forward == 10);
  CHECK(times_at(cost, 10).backward_input == 10);
  CHECK(times_at(cost, 2).forward == 6);
  CHECK(times_at(cost, 1).backward_weight == 2);
  CHECK(times_at(cost, 0).total() == 0);
  cost.times = {{4, {8, 4, 2}}};
  CHECK(times_at(cost, 1).total() == 3.5);
  cost.times = {{4, {1, 1, 1}}, {8, {9, 9, 9}}};
  CHECK(times_at(cost, 1).forward == 0);  // never below nothing
  expect_error(ErrorKind::usage, {"no measured times"}, [] { times_at({}, 1); });
}

TEST_CASE("Recomputing keeps inputs and runs the forward again") {
  StageCost cost;
  cost.times = {{2, {8, 4, 2}}};
  cost.memory = {1000, 500, 100, 30, 7, 10, 20};
  const StageCost again = with_recompute(cost);
  CHECK(times_at(again, 2).backward_input == 12);
  CHECK(times_at(again, 2).forward == 8);
  CHECK(again.memory.kept_bytes == 10);
  CHECK(again.memory.backward_bytes == 107);
  CHECK(again.memory.weight_bytes == 30);
}

}  // namespace
}  // namespace convoy::testing
