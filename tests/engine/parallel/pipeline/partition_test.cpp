// The partitioner against a search over all cuts, and its parts by hand.
#include "engine/parallel/pipeline/partition.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <random>

#include "engine/parallel/pipeline/worker_memory.h"
#include "tests/engine/parallel/pipeline/schedule_cases.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

// A chain of nodes with whole-number costs for two kinds of devices, some reading an earlier one.
std::vector<NodeCost> random_nodes(int count, std::mt19937& random) {
  auto number = [&](int least, int most) {
    return static_cast<double>(std::uniform_int_distribution<int>(least, most)(random));
  };
  std::vector<NodeCost> nodes(count);
  for (int i = 0; i < count; ++i) {
    NodeCost& node = nodes[i];
    node.name = fmt::format("n{}", i);
    for (int kind = 0; kind < 2; ++kind) {
      node.times.push_back({number(1, 9), number(0, 9), number(0, 9)});
    }
    node.memory = {number(0, 50), number(0, 20), number(1, 30), number(0, 20), number(0, 9), 0, 0};
    node.output_bytes = number(1, 20);
    if (i > 0) node.inputs = {i - 1};
    if (i > 2 && number(0, 2) == 0) node.inputs.push_back(i - 3);
  }
  return nodes;
}

PartitionTask random_task(const char* schedule, int stages, std::mt19937& random) {
  PartitionTask task;
  task.nodes = random_nodes(7, random);
  task.schedule = request_of(schedule, stages, 5);
  for (int stage = 0; stage < stages; ++stage) task.devices.push_back(stage % 2);
  task.images = {2, 2, 2, 2, 1};
  task.link = {1, 4};
  task.candidates = 4;
  return task;
}

// All ways to end `stages` stages at `nodes` nodes.
void all_ends(int nodes, int stages, std::vector<int>& ends,
              const std::function<void(const std::vector<int>&)>& visit) {
  if (static_cast<int>(ends.size()) == stages - 1) {
    ends.push_back(nodes);
    visit(ends);
    return ends.pop_back();
  }
  for (int end = (ends.empty() ? 0 : ends.back()) + 1; end < nodes; ++end) {
    ends.push_back(end);
    all_ends(nodes, stages, ends, visit);
    ends.pop_back();
  }
}

// The objective straight from the nodes.
double objective(const PartitionTask& task, const std::vector<int>& ends) {
  const std::vector<double> crossing = crossing_bytes(task.nodes);
  auto transfer = [&](int place) {
    const bool inside = place > 0 && place < static_cast<int>(task.nodes.size());
    return inside ? task.link.seconds(2 * crossing[place - 1]) : 0;
  };
  const int m = static_cast<int>(task.images.size());
  double sum = 0, forward = 0, backward = 0, slowest = 0;
  for (std::size_t stage = 0, first = 0; stage < ends.size(); first = ends[stage++]) {
    double f = 0, b = 0;
    for (int node = static_cast<int>(first); node < ends[stage]; ++node) {
      f += task.nodes[node].times[task.devices[stage]].forward;
      b += task.nodes[node].times[task.devices[stage]].backward();
    }
    const double moved = std::max(transfer(static_cast<int>(first)), transfer(ends[stage]));
    sum += f + b + 2 * transfer(static_cast<int>(first));
    forward = std::max({forward, f, moved});
    backward = std::max({backward, b, moved});
    slowest = std::max({slowest, f + b, moved});
  }
  if (task.schedule.name == "fill-drain") return sum + (m - 1) * (forward + backward);
  return m * slowest;
}

bool fits(const PartitionTask& task, const std::vector<int>& ends) {
  if (task.caps.empty()) return true;
  const NodeSums sums(task.nodes, 2);
  MemoryTask memory{{}, task.images, task.slots};
  for (std::size_t stage = 0; stage < ends.size(); ++stage) {
    memory.costs.push_back(
        sums.stage(stage == 0 ? 0 : ends[stage - 1], ends[stage], task.devices[stage]));
  }
  const auto peaks = worst_memory(make_schedule(task.schedule), memory);
  for (std::size_t stage = 0; stage < ends.size(); ++stage) {
    if (peaks[stage].bytes > task.caps[stage]) return false;
  }
  return true;
}

std::vector<double> searched(const PartitionTask& task) {
  std::vector<double> all;
  std::vector<int> ends;
  all_ends(static_cast<int>(task.nodes.size()), task.schedule.workers, ends,
           [&](const std::vector<int>& cut) {
             if (fits(task, cut)) all.push_back(objective(task, cut));
           });
  std::sort(all.begin(), all.end());
  return all;
}

void compare(const PartitionTask& task) {
  const std::vector<double> expected = searched(task);
  const std::vector<Partition> found = best_cuts(task);
  INFO(task.schedule.name << ", stages " << task.schedule.workers);
  REQUIRE(found.empty() == expected.empty());
  for (std::size_t i = 0; i < found.size(); ++i) {
    // Fill-drain keeps the best, and of the others those that may be best for another m.
    if (i == 0 || task.schedule.name != "fill-drain") CHECK(found[i].objective_s == expected[i]);
    CHECK(found[i].objective_s == objective(task, found[i].ends));
    CHECK(fits(task, found[i].ends));
  }
}

TEST_CASE("The best cuts are those of a search over all cuts") {
  std::mt19937 random(1);
  for (const char* schedule : {"fill-drain", "1f1b", "zb-h1"}) {
    for (int stages = 1; stages <= 4; ++stages) {
      for (int round = 0; round < 8; ++round) {
        PartitionTask task = random_task(schedule, stages, random);
        compare(task);
        task.caps.assign(stages, 1200.0 / stages + 250);
        compare(task);
      }
    }
  }
}

// The caps above must bite, but not always.
TEST_CASE("Memory decides about cuts") {
  std::mt19937 random(2);
  int less = 0, none = 0;
  for (int round = 0; round < 20; ++round) {
    PartitionTask task = random_task("1f1b", 3, random);
    const std::size_t all = searched(task).size();
    task.caps.assign(3, 650);
    const std::size_t fitting = searched(task).size();
    less += fitting < all;
    none += fitting == 0;
  }
  CHECK(less > 0);
  CHECK(none < 20);
}

// Four nodes of 1 s F, I and W; n3 reads n0 as a residual block does.
PartitionTask block(int workers) {
  PartitionTask task;
  for (int i = 0; i < 4; ++i) {
    NodeCost node;
    node.name = fmt::format("n{}", i);
    node.times = {{1, 1, 1}};
    node.memory = {100, 10, 5, 3, 1, 0, 0};
    node.output_bytes = 8;
    if (i > 0) node.inputs = {i - 1};
    task.nodes.push_back(node);
  }
  task.nodes[3].inputs.push_back(0);
  task.schedule = request_of("1f1b", workers, 2);
  task.images = {1, 1};
  return task;
}

TEST_CASE("Two tensors cross a cut inside a residual block") {
  CHECK(crossing_bytes(block(1).nodes) == std::vector<double>{8, 16, 16, 0});
  const NodeSums sums(block(1).nodes, 2);
  CHECK(sums.message_bytes(2) == 32);
  CHECK(sums.message_bytes(4) == 0);
  const StageCost stage = sums.stage(1, 3, 0);
  CHECK(times_at(stage, 2).total() == 6);
  CHECK(stage.memory.parameter_bytes == 200);
  CHECK(stage.memory.workspace_bytes == 10);
  CHECK(stage.memory.kept_bytes == 10);
  CHECK(stage.memory.weight_bytes == 6);
  CHECK(stage.memory.backward_bytes == 1);
  CHECK(stage.memory.input_bytes == 8);
  CHECK(stage.memory.output_bytes == 16);
}

TEST_CASE("The chosen cut is the fastest simulated one") {
  const Partition even = choose_partition(block(2));
  CHECK(even.ends == std::vector<int>{2, 4});
  CHECK(even.objective_s == 12);
  CHECK(even.timeline.makespan == 16);  // 2 (6) and (p-1)(F+I)
  const Partition given = simulate_cuts(block(2), {1, 4});
  CHECK(given.objective_s == 18);
  CHECK(given.timeline.makespan > even.timeline.makespan);
  PartitionTask slow = block(2);  // 2 s a tensor: cutting before the block is as good
  slow.link.latency_s = 0;
  slow.link.bytes_per_s = 0.5;
  CHECK(choose_partition(slow).ends == std::vector<int>{1, 4});
}

TEST_CASE("Interleaved stages and a cap of memory are looked at together") {
  PartitionTask task = block(2);
  task.schedule = request_of("interleaved", 2, 2, 2);
  CHECK(choose_partition(task).ends == std::vector<int>{1, 2, 3, 4});
  task.caps = {150, 150};
  expect_error(ErrorKind::resource, {"no cut of 4 nodes into 4 stages fits"},
               [&] { choose_partition(task); });
}

TEST_CASE("What cannot be cut is refused") {
  expect_error(ErrorKind::usage, {"5 stages for 4 nodes"}, [] { best_cuts(block(5)); });
  expect_error(ErrorKind::usage, {"stage 1 is empty"}, [] { simulate_cuts(block(2), {4, 4}); });
  expect_error(ErrorKind::usage, {"the last stage ends at node 3, expected 4"}, [] {
    simulate_cuts(block(2), {1, 3});
  });
  expect_error(ErrorKind::usage, {"1 stages, expected 2"}, [] { simulate_cuts(block(2), {4}); });
  auto refused = [](const char* part, const std::function<void(PartitionTask&)>& change) {
    PartitionTask task = block(2);
    change(task);
    expect_error(ErrorKind::usage, {part}, [&] { best_cuts(task); });
  };
  refused("1 devices for 2 workers", [](auto& task) { task.devices = {0}; });
  refused("1 memory caps for 2 workers", [](auto& task) { task.caps = {1}; });
  refused("no micro-batch", [](auto& task) { task.images.clear(); });
  refused("node 1 (n1) reads node 1", [](auto& task) { task.nodes[1].inputs = {1}; });
  refused("node n2 has times for 0 kinds", [](auto& task) { task.nodes[2].times.clear(); });
  PartitionTask small = block(2);
  small.caps = {150, 1000};
  expect_error(ErrorKind::resource, {"worker 0 needs"}, [&] { simulate_cuts(small, {2, 4}); });
  expect_error(ErrorKind::resource, {"no cut of 4 nodes into 2 stages fits"}, [&] {
    small.caps = {100, 100};
    choose_partition(small);
  });
}

}  // namespace
}  // namespace convoy::testing
