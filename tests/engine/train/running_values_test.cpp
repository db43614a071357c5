// Running statistics of a batch norm in the second stage of a pipeline, against numbers worked out
// by hand: one channel starts at mean 0 and variance 1, momentum 0.1, and sees small integers.
#include <cmath>

#include "engine/data/order.h"
#include "engine/train/batch_feed.h"
#include "tests/engine/train/pipeline_runs.h"
#include "tests/support/catch.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

struct RunningCase {
  const char* bn;
  std::vector<std::int64_t> shares;  // images of each replica
  std::int64_t micro_batch;
  std::vector<float> values;  // of the images, one replica's behind the other's
  double mean, variance;
};

// The window's images have one pixel; all three channels see the same.
HostBatch batch_of(const RunningCase& each) {
  HostBatch batch;
  batch.images = batch.batch_images = std::ssize(each.values);
  batch.shape = Shape{batch.images, 3, 1, 1};
  for (float value : each.values) {
    batch.x.insert(batch.x.end(), 3, value);
    batch.labels.push_back(std::ssize(batch.labels) % 3);
  }
  batch.shares = each.shares;
  batch.image_replicas = batch.label_replicas = {0, static_cast<int>(each.shares.size())};
  batch.set_starts();
  return batch;
}

PipelineCase layout_of(const RunningCase& each, const std::string& schedule) {
  PipelineCase layout;
  layout.model = "pixels";
  layout.image_size = 1;
  layout.replicas = static_cast<int>(each.shares.size());
  layout.workers = 2;
  layout.cuts = {1};
  layout.schedule.name = schedule;
  layout.rule.size = each.micro_batch;
  layout.bn = each.bn;
  layout.dtype = DType::f64;
  layout.device = "ref";
  return layout;
}

void check_running(const RunningCase& each, const std::string& schedule) {
  INFO(each.bn << ", " << schedule << ", micro-batches of " << each.micro_batch);
  RunningPipeline pipeline(layout_of(each, schedule));
  std::vector<HostBatch> batches = {batch_of(each)};
  const Window window{
      .step = 1, .images = batches.front().images, .lr = 0.1, .shares = {batches.front().shares}};
  ReadyBatches feed(std::move(batches));
  pipeline.runner->step(window, feed);
  for (std::size_t replica = 0; replica < each.shares.size(); ++replica) {
    const Network& network = *pipeline.networks[2 * replica + 1];
    for (const auto& [name, buffer] : network.named_buffers()) {
      const bool mean = name == "bn.running_mean";
      if (!mean && name != "bn.running_var") continue;
      for (double value : buffer.to_vector<double>()) {
        CHECK(std::abs(value - (mean ? each.mean : each.variance)) < 1e-12);
      }
    }
  }
}

}  // namespace

TEST_CASE("running values through two stages are those worked out by hand") {
  const std::vector<float> eight = {0, 1, 2, 3, 4, 5, 6, 7};
  const double after_two = 0.9 * (0.9 + 0.1 * 5 / 3) + 0.1 * 5 / 3;  // 1.126667
  const std::vector<RunningCase> cases = {
      {"micro", {8}, 4, eight, 0.685, after_two},
      {"deferred", {8}, 4, eight, 0.35, 1.5},
      {"micro", {8}, 8, eight, 0.35, 1.5},
      {"deferred", {8}, 8, eight, 0.35, 1.5},
      {"frozen", {8}, 4, eight, 0, 1},
      {"micro", {5}, 3, {0, 1, 2, 3, 4}, 0.44, 0.95},
      {"deferred", {5}, 3, {0, 1, 2, 3, 4}, 0.2, 1.15},
      {"sync", {4, 4}, 2, {0, 1, 4, 5, 2, 3, 6, 7}, 0.685, after_two},
      {"deferred+sync", {4, 4}, 2, {0, 1, 4, 5, 2, 3, 6, 7}, 0.35, 1.5},
      {"sync", {3, 1}, 3, {0, 1, 2, 7}, 0.25, 0.9 + 0.1 * 29 / 3},  // 1.866667
  };
  for (const RunningCase& each : cases) {
    for (const char* schedule : {"1f1b", "zb-h1", "fill-drain"}) check_running(each, schedule);
  }
}
