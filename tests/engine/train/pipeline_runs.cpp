#include "tests/engine/train/pipeline_runs.h"

#include <limits>
#include <numeric>

#include "engine/data/order.h"
#include "engine/nn/layers.h"
#include "engine/train/batch_feed.h"
#include "engine/train/local_runner.h"
#include "kernels/base/context.h"
#include "models/models.h"

namespace convoy::testing {
namespace {

constexpr std::int64_t kClasses = 3;

std::shared_ptr<Network> small_network() {
  auto network = std::make_shared<Network>("small", 3, false, kClasses);
  auto conv = [](int in, int out, int stride) {
    return std::make_shared<Conv2d>(in, out, 3, Conv2dOptions{.stride = stride, .padding = 1},
                                    false);
  };
  network->add("conv1", conv(3, 8, 1));
  const int shortcut = network->add("bn1", std::make_shared<BatchNorm2d>(8, true));
  network->add("block.conv1", conv(8, 8, 1));
  network->add("block.bn1", std::make_shared<BatchNorm2d>(8, true));
  const int main = network->add("block.conv2", conv(8, 8, 1));
  network->add("block.bn2", std::make_shared<BatchNorm2d>(8, true, true), {main, shortcut});
  network->add("conv3", conv(8, 16, 2));
  network->add("bn3", std::make_shared<BatchNorm2d>(16, true));
  network->add("pool", std::make_shared<GlobalAvgPool2d>());
  network->add("fc", std::make_shared<Linear>(16, kClasses));
  network->initialize(1);
  return network;
}

// Batch norm sees the pixels as they are, if none is negative; the stages meet before it.
std::shared_ptr<Network> pixels_network() {
  auto network = std::make_shared<Network>("pixels", 3, false, kClasses);
  network->add("relu", std::make_shared<Relu>());
  network->add("bn", std::make_shared<BatchNorm2d>(3));
  network->add("pool", std::make_shared<GlobalAvgPool2d>());
  network->add("fc", std::make_shared<Linear>(3, kClasses));
  network->initialize(1);
  return network;
}

BatchNormMode mode_of(const std::string& bn) {
  if (bn == "frozen") return BatchNormMode::frozen;
  return bn.starts_with("deferred") ? BatchNormMode::deferred : BatchNormMode::micro;
}

bool together(const PipelineCase& each) {
  return each.replicas > 1 && each.bn.ends_with("sync");
}

WorkerParts parts_of(const PipelineCase& each, int worker) {
  WorkerParts parts;
  parts.options.device = Device(each.device + ":" + std::to_string(each.one_device ? 0 : worker));
  parts.options.dtype = each.dtype;
  parts.options.clip_grad = each.clip_grad;
  parts.options.micro_batches = each.rule;
  parts.options.recompute = each.recompute;
  context(parts.options.device).set_threads(1);
  parts.network = network_of(each);
  set_batch_norm_mode(*parts.network, mode_of(each.bn));
  parts.make_optimizer =
      [name = each.optimizer](NamedTensors parameters) -> std::unique_ptr<Optimizer> {
    if (name == "adamw") return std::make_unique<Adamw>(std::move(parameters), AdamwOptions{});
    return std::make_unique<Sgd>(std::move(parameters),
                                 SgdOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-4});
  };
  return parts;
}

std::vector<int> cuts_of(const PipelineCase& each, const Network& network) {
  if (!each.cuts.empty()) return each.cuts;
  const int stages = each.workers * each.stages_per_worker;
  const int layers = static_cast<int>(network.layers().size());
  std::vector<int> cuts;
  for (int stage = 1; stage < stages; ++stage) cuts.push_back(stage * layers / stages);
  return cuts;
}

StepResult step_of(StepRunner& runner, const PipelineCase& each, std::int64_t number) {
  Window window{.step = number, .images = 0, .lr = 0.1};
  std::vector<HostBatch> batches;
  std::int64_t first = 100 * number;
  for (std::int64_t images : each.batches) {
    HostBatch& batch = batches.emplace_back(made_up_batch(each, first, images));
    window.shares.push_back(batch.shares);
    window.images += images;
    first += images;
  }
  if (number == each.bad_step) batches.back().x.at(5) = std::numeric_limits<float>::infinity();
  ReadyBatches feed(std::move(batches));
  return runner.step(window, feed);
}

RunResult train(StepRunner& runner, const PipelineCase& each) {
  RunResult result;
  for (int step = 1; step <= each.steps; ++step) {
    const StepResult one = step_of(runner, each, step);
    result.losses.push_back(one.loss);
    result.norms.push_back(one.grad_norm);
  }
  result.gradients = runner.gradients();
  runner.settle_statistics();
  result.tensors = runner.tensors();
  result.hashes = runner.weights_hashes();
  const HostBatch batch = made_up_batch(each, 1000, 5);
  result.sums = runner.evaluate(batch);
  result.outputs = runner.predict(batch).values;
  return result;
}

}  // namespace

std::string describe(const PipelineCase& each) {
  std::string text =
      fmt::format("{} {}, {} replicas x {} workers x {} stages, bn {}", each.model,
                  each.schedule.name, each.replicas, each.workers, each.stages_per_worker, each.bn);
  if (each.rule.size) text += fmt::format(", micro-batches of {}", *each.rule.size);
  if (each.rule.count) text += fmt::format(", {} micro-batches", *each.rule.count);
  return text;
}

std::shared_ptr<Network> network_of(const PipelineCase& each) {
  if (each.model == "small") return small_network();
  if (each.model == "pixels") return pixels_network();
  return make_model(each.model, kClasses, 1);
}

HostBatch made_up_batch(const PipelineCase& each, std::int64_t first, std::int64_t images) {
  HostBatch batch;
  batch.images = batch.batch_images = images;
  batch.shape = Shape{images, 3, each.image_size, each.image_size};
  for (std::int64_t i = first; i < first + images; ++i) {
    const std::int64_t count = batch.shape.with(0, 1).count();
    for (double value : RandomStream(7, "image/" + std::to_string(i)).normal(count)) {
      batch.x.push_back(static_cast<float>(value));
    }
    batch.labels.push_back(i % kClasses);
  }
  batch.shares = shares_of(images, each.replicas);
  batch.image_replicas = batch.label_replicas = {0, each.replicas};
  batch.set_starts();
  return batch;
}

RunResult run_alone(const PipelineCase& each) {
  PipelineCase alone = each;
  alone.replicas = 1;
  WorkerParts parts = parts_of(alone, 0);
  parts.network->to(parts.options.dtype);
  parts.network->to(parts.options.device);
  auto optimizer = parts.make_optimizer(parts.network->named_parameters());
  LocalRunner runner(parts.network, std::move(optimizer), parts.options);
  return train(runner, alone);
}

RunningPipeline::RunningPipeline(const PipelineCase& each) {
  GroupOptions group_options;
  group_options.backend = "thread";
  group_options.timeout = 30;
  group_options.local_workers = each.replicas * each.workers;
  group_options.on_failure = [](const Error&) {};
  group = Group::make(World(), group_options);
  std::vector<WorkerParts> workers;
  for (int i = 0; i < group_options.local_workers; ++i) {
    workers.push_back(parts_of(each, i));
    networks.push_back(workers.back().network);
  }
  PipelineOptions options;
  options.layout = {each.replicas, each.workers, each.stages_per_worker};
  options.cuts = cuts_of(each, *networks.front());
  options.sample = Shape{1, 3, each.image_size, each.image_size};
  options.division = {each.replicas, each.rule, together(each)};
  options.schedule = each.schedule;
  runner = std::make_unique<PipelineRunner>(*group, std::move(workers), options);
}

StepResult RunningPipeline::step(const PipelineCase& each, std::int64_t number) {
  return step_of(*runner, each, number);
}

RunResult run_pipeline(const PipelineCase& each) {
  RunningPipeline pipeline(each);
  return train(*pipeline.runner, each);
}

}  // namespace convoy::testing
