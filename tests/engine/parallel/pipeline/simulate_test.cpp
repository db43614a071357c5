// The simulator against the published pictures, the closed forms of idle time, and hand-made cases
// of transfers, slots, host time and all-reduce.
#include "engine/parallel/pipeline/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/parallel/pipeline/draw.h"
#include "engine/parallel/pipeline/schedule_text.h"
#include "tests/engine/parallel/pipeline/schedule_cases.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

Schedule made(const std::string& name, int p, int m, int v = 1,
              bool gradient_after_weight = false) {
  ScheduleRequest request = request_of(name, p, m, v);
  request.gradient_after_weight = gradient_after_weight;
  return make_schedule(request);
}

bool near(double value, double expected, double tolerance = 1e-9) {
  return std::abs(value - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

struct Picture {
  const char* name;
  bool gradient_after_weight;
  int units, idle;
  const char* rows;
};

constexpr Picture kPictures[] = {
    {"fill-drain", true, 27, 9,
     "W0  012345.........aabbccddeeff\n"
     "W1  .012345......aabbccddeeff..\n"
     "W2  ..012345...aabbccddeeff....\n"
     "W3  ...012345aabbccddeeff......\n"},
    {"1f1b", true, 27, 9,
     "W0  0123......aa4bb5cc.dd.ee.ff\n"
     "W1  .012....aa3bb4cc5dd.ee.ff..\n"
     "W2  ..01..aa2bb3cc4dd5ee.ff....\n"
     "W3  ...0aa1bb2cc3dd4ee5ff......\n"},
    {"1f1b", false, 24, 6,
     "W0  0123...aA4bB5cC.dD.eE.fF\n"
     "W1  .012..aA3bB4cC5dD.eE.fF.\n"
     "W2  ..01.aA2bB3cC4dD5eE.fF..\n"
     "W3  ...0aA1bB2cC3dD4eE5fF...\n"},
    {"zb-h1", false, 21, 3,
     "W0  0123...aA4bB5cCdDeEfF\n"
     "W1  .012..a3bA4cB5dCeDfEF\n"
     "W2  ..01.a2b3cA4dB5eCfDEF\n"
     "W3  ...0a1b2c3dA4eB5fCDEF\n"},
};

TEST_CASE("Four workers and six micro-batches look like the published pictures") {
  for (const Picture& picture : kPictures) {
    const Schedule schedule = made(picture.name, 4, 6, 1, picture.gradient_after_weight);
    const Timeline timeline = simulate(schedule, equal_stages(4, 6, {1, 1, 1}));
    INFO(picture.name);
    CHECK(timeline.makespan == picture.units);
    for (const WorkerTimes& worker : timeline.workers) CHECK(worker.idle() == picture.idle);
    CHECK(draw(timeline, {1, picture.gradient_after_weight}) == picture.rows);
  }
}

TEST_CASE("Three workers of two stages look like the published picture") {
  const Timeline timeline =
      simulate(made("interleaved", 3, 6, 2, true), equal_stages(6, 6, {1, 1, 1}));
  CHECK(timeline.makespan == 42);
  for (const WorkerTimes& worker : timeline.workers) CHECK(worker.idle() == 6);
  CHECK(draw(timeline, {1, true}) ==
        "W0  012   34..  5      aa bb.cc.  .  .  ddeeff\n"
        "       012  ..aa bb3cc4  5  .  .dd.ee.ff\n"
        "W1  .012   .  3  4  5aa bb cc   .  .  ddeeff..\n"
        "    .   012.aa bb cc   3  4  5dd.ee.ff      ..\n"
        "W2  ..012         3aa4bb5cc         ddeeff....\n"
        "    ..   0aa1bb2cc         3dd4ee5ff      ....\n");
}

TEST_CASE("A column shows what runs in its middle") {
  const Timeline timeline = simulate(made("1f1b", 1, 1), equal_stages(1, 1, {2, 1, 3}));
  CHECK(draw(timeline, {2}) == "W0  0AA\n");  // I from 2 to 3 has no middle of a column
  CHECK(draw(timeline, {0.5}) == "W0  0000aaAAAAAA\n");
  expect_error(ErrorKind::usage, {"columns of 0 s"}, [&] { draw(timeline, {0}); });
}

TEST_CASE("Idle time of equal stages follows the closed forms") {
  const PhaseTimes times = {3, 4, 2};
  const double f = 3, i = 4, b = 6, smallest = 2;
  for (int p = 1; p <= 5; ++p) {
    for (int m : {p, p + 1, 3 * p}) {
      auto idle = [&](const char* name, bool after) {
        const Timeline timeline = simulate(made(name, p, m, 1, after), equal_stages(p, m, times));
        for (const WorkerTimes& worker : timeline.workers) {
          CHECK(near(worker.idle(), timeline.makespan - m * (f + b)));
        }
        return timeline.workers[0].idle();
      };
      INFO("p " << p << ", m " << m);
      CHECK(near(idle("fill-drain", true), (p - 1) * (f + b)));
      CHECK(near(idle("1f1b", true), (p - 1) * (f + b)));
      CHECK(near(idle("fill-drain", false), (p - 1) * (f + i)));
      CHECK(near(idle("1f1b", false), (p - 1) * (f + i)));
      CHECK(near(idle("zb-h1", false), (p - 1) * (f + i - smallest)));
    }
  }
}

TEST_CASE("Stages a worker divide the idle time") {
  for (int p = 2; p <= 4; ++p) {
    for (int v = 1; v <= 3; ++v) {
      for (int m : {p, 2 * p, 3 * p}) {
        const SimulationTask task = equal_stages(p * v, m, {1.0 / v, 1.0 / v, 1.0 / v});
        INFO("p " << p << ", v " << v << ", m " << m);
        CHECK(near(simulate(made("interleaved", p, m, v, true), task).workers[0].idle(),
                   (p - 1) * 3.0 / v));
        CHECK(near(simulate(made("interleaved", p, m, v), task).workers[0].idle(),
                   (p - 1) * 2.0 / v));
      }
    }
  }
}

TEST_CASE("Slow transfers cost 1f1b a round trip per micro-batch") {
  auto makespan = [](const ScheduleRequest& request, double transfer) {
    SimulationTask task = equal_stages(4, 16, {10, 10, 10});
    task.link.latency_s = transfer;
    return simulate(make_schedule(request), task).makespan;
  };
  ScheduleRequest fill = request_of("fill-drain", 4, 16), one = request_of("1f1b", 4, 16);
  fill.gradient_after_weight = one.gradient_after_weight = true;
  ScheduleRequest warm = one;
  warm.warm_up = {6, 4, 2, 0};
  const ScheduleRequest zero_bubble = request_of("zb-h1", 4, 16);
  const double transfers[] = {0, 2, 5};
  const double published[][4] = {{570, 570, 570, 510}, {582, 626, 582, 534}, {600, 710, 600, 570}};
  for (int row = 0; row < 3; ++row) {
    INFO("transfer " << transfers[row]);
    CHECK(makespan(fill, transfers[row]) == published[row][0]);
    CHECK(makespan(one, transfers[row]) == published[row][1]);
    CHECK(makespan(warm, transfers[row]) == published[row][2]);
    CHECK(makespan(zero_bubble, transfers[row]) == published[row][3]);
  }
}

SimulationTask stages(const std::vector<PhaseTimes>& times, int m) {
  SimulationTask task = equal_stages(static_cast<int>(times.size()), m, {});
  for (std::size_t stage = 0; stage < times.size(); ++stage) {
    task.costs[stage].times = {{1, times[stage]}};
  }
  return task;
}

TEST_CASE("Fill-drain of unequal stages takes the sum and the largest of the rest") {
  const std::vector<PhaseTimes> times = {{5, 1, 2}, {2, 4, 3}, {3, 2, 2}, {1, 1, 9}};
  for (int m = 1; m <= 8; ++m) {
    const double sum = 8 + 9 + 7 + 11, largest = 5 + 10;
    CHECK(simulate(made("fill-drain", 4, m, 1, true), stages(times, m)).makespan ==
          sum + (m - 1) * largest);
  }
  const int m = 400;
  const double makespan = simulate(made("1f1b", 4, m, 1, true), stages(times, m)).makespan;
  CHECK(near(makespan / m, 11, 0.02));
}

// Forward and backward of ResNet-50 (batch 128, 224 px) as published by PipeDream's profiler,
// summed over the stages of three cuts, in ms; I and W are half of a backward each.
struct Ceilings {
  std::vector<std::pair<double, double>> stages;
  double published[4][4];  // m = 4, 6, 10, 16: fill-drain, 1f1b, 1f1b with SG before W, zb-h1
};

TEST_CASE("The ceilings of ResNet-50 are the published ones") {
  const Ceilings cuts[] = {
      {{{120.034, 145.436}, {81.416, 115.495}},
       {{1.47, 1.55, 1.71, 1.71},
        {1.55, 1.61, 1.72, 1.72},
        {1.62, 1.66, 1.73, 1.73},
        {1.66, 1.69, 1.73, 1.73}}},
      {{{103.057, 121.038}, {98.393, 139.893}},
       {{1.55, 1.57, 1.67, 1.75},
        {1.65, 1.68, 1.75, 1.81},
        {1.75, 1.77, 1.82, 1.86},
        {1.80, 1.83, 1.87, 1.89}}},
      {{{65.213, 56.692}, {46.371, 75.621}, {46.180, 65.465}, {43.686, 63.153}},
       {{2.09, 2.30, 2.72, 2.99},
        {2.38, 2.65, 3.10, 3.22},
        {2.67, 3.01, 3.38, 3.43},
        {2.87, 3.26, 3.52, 3.55}}},
  };
  for (const Ceilings& cut : cuts) {
    std::vector<PhaseTimes> times;
    double total = 0;
    for (const auto& [forward, backward] : cut.stages) {
      times.push_back({forward, backward / 2, backward / 2});
      total += forward + backward;
    }
    const int p = static_cast<int>(times.size());
    const int counts[] = {4, 6, 10, 16};
    for (int row = 0; row < 4; ++row) {
      const int m = counts[row];
      auto ceiling = [&](const char* name, bool after) {
        return m * total / simulate(made(name, p, m, 1, after), stages(times, m)).makespan;
      };
      INFO("stages " << p << ", m " << m);
      const double* published = cut.published[row];
      CHECK(std::abs(ceiling("fill-drain", true) - published[0]) < 0.006);
      CHECK(std::abs(ceiling("1f1b", true) - published[1]) < 0.006);
      CHECK(std::abs(ceiling("1f1b", false) - published[2]) < 0.006);
      CHECK(std::abs(ceiling("zb-h1", false) - published[3]) < 0.006);
    }
  }
}

// Two workers take the stages of the four-stage cut in turns.
TEST_CASE("The ceilings of interleaved ResNet-50 are the published ones") {
  const std::vector<PhaseTimes> times = {{65.213, 28.346, 28.346},
                                         {46.371, 37.8105, 37.8105},
                                         {46.180, 32.7325, 32.7325},
                                         {43.686, 31.5765, 31.5765}};
  double total = 0;
  for (const PhaseTimes& stage : times) total += stage.total();
  const std::pair<int, double> published[] = {{4, 1.75}, {6, 1.83}, {10, 1.90}, {16, 1.95}};
  for (const auto& [m, ceiling] : published) {
    const double makespan = simulate(made("interleaved", 2, m, 2, true), stages(times, m)).makespan;
    INFO("m " << m);
    CHECK(std::abs(m * total / makespan - ceiling) < 0.006);
  }
}

TEST_CASE("A worker's time is accounted for to the last second") {
  for (const NamedSchedule& named : kSchedules) {
    SimulationTask task =
        stages({{5, 1, 2}, {2, 4, 3}, {3, 2, 2}, {1, 1, 9}, {1, 2, 3}, {2, 1, 1}}, 7);
    task.link = {0.25, 10};
    task.host_s = 0.125;
    task.slots = 2;
    for (StageCost& cost : task.costs) {
      cost.all_reduce_s = 3;
      cost.step_s = 0.5;
      cost.memory.input_bytes = cost.memory.output_bytes = 20;
    }
    const int v = named.several_stages ? 2 : 1;
    const Timeline timeline = simulate(made(named.name, 6 / v, 7, v), task);
    INFO(named.name);
    for (const WorkerTimes& worker : timeline.workers) {
      const double spent = worker.compute.total() + worker.step + worker.host + worker.idle();
      CHECK(near(spent, timeline.makespan));
      CHECK(worker.drained >= 0);
    }
  }
}

// Two workers, one micro-batch of 3 images whose activation has 40 bytes an image, its gradient
// too.
SimulationTask two_stages(int m) {
  SimulationTask task = equal_stages(2, m, {1, 1, 1});
  task.images.assign(m, 3);
  for (StageCost& cost : task.costs) cost.times = {{3, {1, 1, 1}}};
  task.costs[0].memory.output_bytes = task.costs[1].memory.input_bytes = 40;
  return task;
}

TEST_CASE("A transfer takes latency and bytes over bandwidth; waiting is parted at its begin") {
  SimulationTask task = two_stages(1);
  task.link = {2, 10};  // 2 s and 120 bytes at 10 bytes/s: 14 s
  const Timeline timeline = simulate(made("1f1b", 2, 1), task);
  const WorkerTimes& first = timeline.workers[0];
  const WorkerTimes& last = timeline.workers[1];
  CHECK(last.starved == 1);
  CHECK(last.transfer == 14);
  CHECK(first.starved == 16);  // until I of the last stage is done, at 17
  CHECK(first.transfer == 14);
  CHECK(timeline.makespan == 33);
  CHECK(last.drained == 33 - 18);
}

TEST_CASE("A micro-batch without images costs a header and no time") {
  SimulationTask task = two_stages(1);
  task.link = {2, 10};
  task.images = {0};
  CHECK(simulate(made("1f1b", 2, 1), task).makespan == 4);
}

TEST_CASE("Transfers of one direction follow each other, both directions run at once") {
  SimulationTask task = two_stages(3);
  task.link = {10, 0};
  const Timeline fill = simulate(made("fill-drain", 2, 3), task);
  // Activations arrive at 11, 21, 31; gradients leave at 33 and then every 10 s.
  CHECK(fill.spans[1][0].end == 11);
  CHECK(fill.spans[1][4].end == 31);
  CHECK(fill.makespan == 33 + 30 + 2);
}

TEST_CASE("A send waits for a slot") {
  SimulationTask task = two_stages(3);
  task.costs[1].times = {{3, {8, 1, 1}}};
  task.slots = 1;
  const Timeline timeline = simulate(made("fill-drain", 2, 3), task);
  // F 0.2 ends at 3, but its message waits until worker 1 takes the one before, at 9.
  CHECK(describe(timeline.spans[0][5].instruction) == "SA 0.2");
  CHECK(timeline.spans[0][5].end == 9);
  CHECK(timeline.workers[0].slot_full == 6);
  task.slots = 2;
  CHECK(simulate(made("fill-drain", 2, 3), task).workers[0].slot_full == 0);
}

TEST_CASE("Host time is spent on each instruction") {
  SimulationTask task = equal_stages(1, 2, {1, 1, 1});
  task.host_s = 0.5;
  const Timeline timeline = simulate(made("1f1b", 1, 2), task);
  CHECK(timeline.workers[0].host == 8 * 0.5);
  CHECK(timeline.makespan == 6 + 4);
}

TEST_CASE("A message takes of the time of both its workers where their cores copy it") {
  SimulationTask task = two_stages(1);
  task.link = {.latency_s = 2, .bytes_per_s = 10, .host_s_per_byte = 0.01};  // 120 bytes: 1.2 s
  const Timeline timeline = simulate(made("1f1b", 2, 1), task);
  CHECK(near(timeline.workers[0].host, 2 * 1.2));
  CHECK(near(timeline.workers[1].host, 2 * 1.2));
  // F, copy, 14 s, copy, F, I, copy, 14 s, copy, I, W.
  CHECK(near(timeline.makespan, 1 + 1.2 + 14 + 1.2 + 2 + 1.2 + 14 + 1.2 + 2));
}

TEST_CASE("An all-reduce runs beside other stages' work and is waited for by the step") {
  SimulationTask task = equal_stages(2, 1, {1, 1, 1});
  for (StageCost& cost : task.costs) {
    cost.all_reduce_s = 5;
    cost.step_s = 1;
  }
  // One worker, two stages: stage 1 reduces from 4 to 9 beside I and W of stage 0, which reduces
  // from 9 to 14.
  const Timeline timeline = simulate(made("interleaved", 1, 1, 2), task);
  CHECK(timeline.workers[0].all_reduce == 14 - 6);
  CHECK(timeline.workers[0].step == 2);
  CHECK(timeline.makespan == 16);
  CHECK(draw(timeline) == "W0  0   aA........|\n     0aA  ........ |\n");
}

TEST_CASE("A table that cannot end is refused by name") {
  const Schedule stuck = parse_schedule("F 0.0  RG 0.0\nF 1.0\n");
  expect_error(ErrorKind::usage, {"deadlock", "RG 0.0"}, [&] {
    simulate(stuck, equal_stages(2, 1, {1, 1, 1}));
  });
  SimulationTask task = equal_stages(1, 1, {1, 1, 1});
  task.slots = 0;
  expect_error(ErrorKind::usage, {"channels of 0 messages"},
               [&] { simulate(made("1f1b", 1, 1), task); });
}

}  // namespace
}  // namespace convoy::testing
