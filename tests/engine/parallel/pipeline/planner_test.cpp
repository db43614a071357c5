// The planner against closed forms and a search over all layouts by hand.
#include "engine/parallel/pipeline/planner.h"

#include <algorithm>
#include <set>

#include "engine/parallel/pipeline/verify_schedule.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

// `count` nodes in a chain, each with these seconds an image.
std::vector<NodeCost> chain(int count, const PhaseTimes& times, std::int64_t images,
                            double gradient_bytes = 0, double output_bytes = 0) {
  std::vector<NodeCost> nodes(static_cast<std::size_t>(count));
  const auto n = static_cast<double>(images);
  for (int i = 0; i < count; ++i) {
    NodeCost& node = nodes[static_cast<std::size_t>(i)];
    node.name = fmt::format("n{}", i);
    node.times = {{n * times.forward, n * times.backward_input, n * times.backward_weight}};
    node.gradient_bytes = gradient_bytes;
    node.output_bytes = output_bytes;
    if (i > 0) node.inputs = {i - 1};
  }
  return nodes;
}

// Eight equal nodes, F = I = W = 1 a node and image.
PlanTask even_task(int workers, std::int64_t batch, double gradient_bytes = 0) {
  PlanTask task;
  task.nodes_at = [gradient_bytes](std::int64_t images) {
    return chain(8, {1, 1, 1}, images, gradient_bytes);
  };
  task.machine.workers = workers;
  task.batch = batch;
  return task;
}

const PlanCandidate& find(const std::vector<PlanCandidate>& all, const std::string& layout,
                          const std::string& schedule, std::int64_t size) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const PlanCandidate& candidate) {
    return candidate.layout == layout && candidate.schedule == schedule &&
           candidate.micro_batch_size == size;
  });
  REQUIRE(found != all.end());
  return *found;
}

}  // namespace

TEST_CASE("All-reduces hide behind backward, bucket by bucket") {
  AllReduceCost cost{.replicas = 2, .link = {0, 10}, .first = 10, .rest = 20};
  CHECK(cost.seconds(20) == 2);  // 2 (n - 1) / n = 1
  CHECK(AllReduceCost{.replicas = 4, .link = {1, 0}}.seconds(5) == 6);
  CHECK(AllReduceCost{.replicas = 1, .link = {1, 1}}.seconds(5) == 0);
  // 10 bytes at 3 until 4; 20 bytes at 6 until 8; the last 5 bytes at 7 until 8.5.
  const std::vector<GradientPart> parts = {{3, 10}, {2, 10}, {1, 10}, {1, 5}};
  CHECK(exposed_all_reduce(cost, parts) == 1.5);
  cost.overlaps = false;
  CHECK(exposed_all_reduce(cost, parts) == 3.5);
}

TEST_CASE("Without an all-reduce data parallel is twice as fast, a pipeline less") {
  const auto all = plan_layouts(even_task(2, 8));
  const double one = 8 * 3 * 8;
  CHECK(find(all, "single", "1f1b", 8).seconds == one);
  CHECK(find(all, "data-parallel", "1f1b", 4).seconds == one / 2);
  // Model parallel: F and I of all nodes one after the other, then W of the first four.
  CHECK(find(all, "pipeline", "fill-drain", 8).seconds == 8 * (8 + 8 + 4));
  CHECK(find(all, "pipeline", "zb-h1", 1).seconds == one / 2 + (4 + 4 - 4));
  CHECK(recommended(all).layout == "data-parallel");
  for (const PlanCandidate& candidate : all) {
    CHECK(candidate.seconds >= one / 2);
    CHECK(candidate.images_per_s == Approx(8 / candidate.seconds));
  }
}

TEST_CASE("A slow all-reduce makes a pipeline the faster layout") {
  PlanTask task = even_task(2, 8, 100);  // 800 bytes of gradients
  task.machine.inside = {0, 4};
  const auto all = plan_layouts(task);
  // One bucket, after backward: 800 bytes at 4 a second for two replicas.
  CHECK(find(all, "data-parallel", "1f1b", 4).seconds == 96 + 200);
  CHECK(recommended(all).layout == "pipeline");
  CHECK(recommended(all).seconds < 8 * 3 * 8 * 0.6);
}

TEST_CASE("A pipeline that is hardly faster than data parallel is not recommended") {
  std::vector<PlanCandidate> all(2);
  all[0].layout = "pipeline";
  all[0].stages = 2;
  all[0].seconds = 0.98;
  all[1].layout = "data-parallel";
  all[1].seconds = 1;
  CHECK(recommended(all).layout == "data-parallel");
  CHECK(recommended(all, 0.01).layout == "pipeline");
  all[0].dropped = "too big";
  std::swap(all[0], all[1]);
  CHECK(recommended(all).layout == "data-parallel");
  all[0].dropped = "too big as well";
  expect_error(ErrorKind::resource, {"no layout", "too big as well"}, [&] { recommended(all); });
}

TEST_CASE("Candidates are all layouts of the workers, each within the batch") {
  const auto all = plan_layouts(even_task(4, 8));
  std::set<std::pair<int, int>> layouts;
  for (const PlanCandidate& candidate : all) {
    layouts.insert({candidate.replicas, candidate.stages});
    const Schedule schedule = schedule_of(even_task(4, 8), candidate);
    CHECK(schedule.workers() == candidate.stages);
    CHECK(candidate.node_ends.back() == 8);
    CHECK(simulate_candidate(even_task(4, 8), candidate).makespan == candidate.seconds);
  }
  CHECK(layouts == std::set<std::pair<int, int>>{{1, 1}, {4, 1}, {2, 2}, {1, 4}});
  CHECK(std::is_sorted(all.begin(), all.end(),
                       [](const auto& a, const auto& b) { return a.seconds < b.seconds; }));
}

TEST_CASE("What is given narrows the candidates") {
  PlanTask task = even_task(4, 8);
  task.stages = 2;
  task.schedule = "interleaved";
  task.micro_batch_size = 3;
  const auto all = plan_layouts(task);
  REQUIRE(all.size() == 1);
  CHECK(all[0].replicas == 2);
  CHECK(all[0].stages_per_worker == 2);
  CHECK(all[0].micro_batches == 2);  // 3 and 1 of 4 images
  CHECK(all[0].node_ends.size() == 4);
  task.replicas = 4;
  expect_error(ErrorKind::usage, {"4 replicas of 2 stages", "4 workers"},
               [&] { plan_layouts(task); });
}

TEST_CASE("What does not fit is recomputed, and dropped with the reason where that is no help") {
  PlanTask task = even_task(2, 8);
  task.nodes_at = [](std::int64_t images) {
    std::vector<NodeCost> nodes = chain(8, {1, 1, 1}, images, 0, 1);
    for (NodeCost& node : nodes) {
      node.memory.parameter_bytes = 10;
      node.memory.kept_bytes = 5;
    }
    return nodes;
  };
  task.micro_batch_size = 1;
  task.machine.caps = {200};
  const auto wide = plan_layouts(task);  // 80 + 40 alone; 40 + up to 8 x 20 in two stages
  for (const PlanCandidate& candidate : wide) CHECK(candidate.dropped.empty());
  CHECK(find(wide, "pipeline", "1f1b", 1).memory.front() <= 200);
  task.machine.caps = {100};
  const auto narrow = plan_layouts(task);
  const PlanCandidate& single = find(narrow, "single", "1f1b", 1);
  CHECK_FALSE(single.recompute);  // it holds one micro-batch at a time either way
  CHECK(single.dropped.find("its cap is 100") != std::string::npos);
  CHECK(find(narrow, "pipeline", "fill-drain", 1).recompute);
  CHECK(find(narrow, "pipeline", "fill-drain", 1).dropped.empty());
  CHECK(recommended(narrow).layout == "pipeline");
  CHECK_FALSE(narrow.back().dropped.empty());
}

TEST_CASE("More replicas than images are dropped") {
  const auto all = plan_layouts(even_task(4, 2));
  CHECK(all.back().dropped == "4 replicas for a batch of 2 images");
}

TEST_CASE("Slow transfers make 1f1b warm up for longer") {
  PlanTask task = even_task(4, 16);
  task.nodes_at = [](std::int64_t images) { return chain(8, {5, 10, 0}, images, 0, 5); };
  task.stages = 4;
  task.schedule = "1f1b";
  task.micro_batch_size = 1;
  task.machine.inside = {0, 1};
  const auto all = plan_layouts(task);
  CHECK(all.at(0).warm_up == std::vector<int>{6, 4, 2, 0});
  task.machine.inside = {};
  CHECK(plan_layouts(task).at(0).warm_up.empty());
}

TEST_CASE("Replicas within a node use its links, those beyond it share the way out") {
  PlanTask task = even_task(8, 8, 100);
  task.machine.per_node = 4;
  task.machine.inside = {0, 1000};
  task.machine.between = {0, 8};
  task.replicas = 4;
  task.schedule = "fill-drain";
  task.micro_batch_size = 2;
  task.node_ends = {4, 8};
  // Two stages of 400 bytes; each ring leaves a node with half of 8 bytes/s: 1.5 x 400 / 4.
  const PlanCandidate candidate = plan_layouts(task).at(0);
  task.machine.reduce_overlaps = false;
  CHECK(candidate.seconds == plan_layouts(task).at(0).seconds);  // one bucket hides nowhere
  task.machine.between = {};
  CHECK(candidate.seconds == Approx(plan_layouts(task).at(0).seconds + 150));
}

TEST_CASE("Replicas of different devices are as slow as the slowest") {
  PlanTask task = even_task(2, 8);
  task.nodes_at = [](std::int64_t images) {
    std::vector<NodeCost> nodes = chain(8, {1, 1, 1}, images);
    for (NodeCost& node : nodes) {
      const PhaseTimes fast = node.times[0];
      node.times.push_back({2 * fast.forward, 2 * fast.backward_input, 2 * fast.backward_weight});
    }
    return nodes;
  };
  task.machine.kinds = {0, 1};
  const auto all = plan_layouts(task);
  CHECK(find(all, "data-parallel", "1f1b", 4).seconds == 2 * 96);
  const PlanCandidate& pipeline = find(all, "pipeline", "1f1b", 1);
  CHECK(pipeline.node_ends.front() > 4);  // the fast device takes more
}

}  // namespace convoy::testing
