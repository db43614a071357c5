// The step on one worker: weights by images, batch-norm modes, clipping, numerics errors, counts.
#include "engine/train/local_runner.h"

#include <cmath>
#include <limits>

#include "engine/io/named_array.h"
#include "engine/nn/layers.h"
#include "engine/nn/state.h"
#include "engine/train/batch_feed.h"
#include "kernels/base/context.h"
#include "models/models.h"
#include "tests/engine/train/training.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

HostBatch batch_of(std::int64_t images, std::int64_t first = 0) {
  HostBatch batch;
  batch.images = batch.batch_images = images;
  batch.shape = Shape{images, 3, 32, 32};
  for (std::int64_t i = 0; i < images; ++i) {
    const auto name = "image/" + std::to_string(first + i);
    for (double value : RandomStream(7, name).normal(3 * 32 * 32)) {
      batch.x.push_back(static_cast<float>(value));
    }
    batch.labels.push_back((first + i) % 3);
  }
  return batch;
}

struct Fixture {
  std::shared_ptr<Network> network;
  std::unique_ptr<LocalRunner> runner;
};

// lr 0: the gradients can be read after the step.
Fixture make(RunnerOptions options, BatchNormMode mode, const char* model = "resnet18") {
  options.device = "cpu:0";
  Fixture fixture;
  fixture.network = make_model(model, 3, 1);
  set_batch_norm_mode(*fixture.network, mode);
  auto optimizer = std::make_unique<Sgd>(fixture.network->named_parameters(),
                                         SgdOptions{.lr = 0, .momentum = 0.9});
  fixture.runner = std::make_unique<LocalRunner>(fixture.network, std::move(optimizer), options);
  return fixture;
}

StepResult step(Fixture& fixture, const std::vector<HostBatch>& batches, double lr = 0) {
  Window window{.step = 1, .images = 0, .lr = lr};
  for (const HostBatch& batch : batches) {
    window.images += batch.images;
    window.shares.push_back({batch.images});
  }
  ReadyBatches feed(batches);
  return fixture.runner->step(window, feed);
}

// Largest difference of all gradients, relative to each one's norm.
double gradient_difference(const Fixture& a, const Fixture& b) {
  double worst = 0;
  const NamedTensors of_a = a.network->named_parameters();
  const NamedTensors of_b = b.network->named_parameters();
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    const auto x = of_a[i].second.grad().to_vector<double>();
    const auto y = of_b[i].second.grad().to_vector<double>();
    double difference = 0, norm = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      difference += (x[k] - y[k]) * (x[k] - y[k]);
      norm += x[k] * x[k];
    }
    worst = std::max(worst, std::sqrt(difference / std::max(norm, 1e-20)));
  }
  return worst;
}

}  // namespace

TEST_CASE("with frozen batch norm every division gives the gradient of the whole batch") {
  Fixture whole = make({}, BatchNormMode::frozen);
  const StepResult expected = step(whole, {batch_of(8)});
  const std::vector<MicroBatchRule> rules = {{.size = 3}, {.count = 3}, {.count = 9}, {.size = 1}};
  for (const MicroBatchRule& rule : rules) {
    RunnerOptions options;
    options.micro_batches = rule;
    Fixture parts = make(options, BatchNormMode::frozen);
    const StepResult result = step(parts, {batch_of(8)});
    CHECK(std::abs(result.loss - expected.loss) < 1e-5 * expected.loss);
    CHECK(gradient_difference(whole, parts) < 1e-5);
  }
  // 8 = 5 + 3: accumulated batches are weighted by their images.
  Fixture accumulated = make({}, BatchNormMode::frozen);
  const StepResult result = step(accumulated, {batch_of(5), batch_of(3, 5)});
  CHECK(std::abs(result.loss - expected.loss) < 1e-5 * expected.loss);
  CHECK(gradient_difference(whole, accumulated) < 1e-5);
}

TEST_CASE("deferred batch norm commits once a batch, with the statistics of the whole batch") {
  RunnerOptions options;
  options.micro_batches = {.count = 3};
  Fixture deferred = make(options, BatchNormMode::deferred);
  Fixture whole = make({}, BatchNormMode::micro);
  step(deferred, {batch_of(8)});
  step(whole, {batch_of(8)});
  // The first batch norm sees the same values either way; later ones see other inputs.
  const auto& a = dynamic_cast<BatchNorm2d&>(*deferred.network->layers()[1].module);
  const auto& b = dynamic_cast<BatchNorm2d&>(*whole.network->layers()[1].module);
  const auto var_a = a.running_var.to_vector<double>(), var_b = b.running_var.to_vector<double>();
  for (std::size_t c = 0; c < var_a.size(); ++c) {
    CHECK(std::abs(var_a[c] - var_b[c]) < 1e-5 * var_b[c]);
  }
  CHECK(a.num_batches_tracked == 1);
  CHECK(b.num_batches_tracked == 1);
}

TEST_CASE("the gradient norm is the one before clipping, and clipping bounds the update") {
  RunnerOptions options;
  options.clip_grad = 0.5;
  Fixture clipped = make(options, BatchNormMode::micro);
  const auto before = to_arrays(clipped.network->named_parameters());
  const StepResult result = step(clipped, {batch_of(4)}, 1.0);
  REQUIRE(result.grad_norm > 0.5);
  double moved = 0;
  const auto after = to_arrays(clipped.network->named_parameters());
  for (std::size_t i = 0; i < after.size(); ++i) {
    const auto* x = reinterpret_cast<const float*>(before[i].bytes.data());
    const auto* y = reinterpret_cast<const float*>(after[i].bytes.data());
    for (std::size_t k = 0; k < after[i].bytes.size() / sizeof(float); ++k) {
      moved += (double(x[k]) - y[k]) * (double(x[k]) - y[k]);
    }
  }
  CHECK(std::abs(std::sqrt(moved) - 0.5) < 1e-3);
}

TEST_CASE("a loss that is not finite stops with step and first layer, and nothing is updated") {
  Fixture fixture = make({}, BatchNormMode::micro);
  HostBatch bad = batch_of(4);
  bad.x[100] = std::numeric_limits<float>::infinity();
  expect_error(ErrorKind::numerics, {"step 1", "inf", "input"}, [&] { step(fixture, {bad}); });
  Tensor weight = fixture.network->named_parameters().front().second;
  weight.fill_(1e38);
  expect_error(ErrorKind::numerics, {"step 1", "first value", "conv1"},
               [&] { step(fixture, {batch_of(4)}); });
}

TEST_CASE("an evaluation whose loss is not finite stops") {
  Fixture fixture = make({}, BatchNormMode::micro);
  HostBatch bad = batch_of(4);
  bad.x[7] = std::numeric_limits<float>::quiet_NaN();
  expect_error(ErrorKind::numerics, {"evaluation", "nan", "input"},
               [&] { fixture.runner->evaluate(bad); });
}

TEST_CASE("a learning rate that is far too high ends in numerics, not in a saved NaN") {
  Settings settings;
  settings.model = "resnet18";
  settings.batch = 8;
  settings.epochs = 4;
  settings.lr = 1e30;
  Recorder events;
  expect_error(ErrorKind::numerics, {"step"}, [&] { run(small_job(settings, 24), events); });
}

TEST_CASE("one value per channel is refused before the first step") {
  Settings settings;
  settings.model = "resnet50";
  settings.batch = 4;
  Recorder events;
  expect_error(ErrorKind::usage,
               {"layer4.0.bn2", "1 value per channel", "1 image", "1x1", "--bn sync"},
               [&] { run(small_job(settings, 9), events); });
  CHECK(events.steps.empty());
}

TEST_CASE("a checkpoint of resnet50 with momentum needs what the arithmetic says") {
  auto network = make_model("resnet50", 1000, 0);
  auto sgd =
      std::make_unique<Sgd>(network->named_parameters(), SgdOptions{.lr = 0.1, .momentum = 0.9});
  CHECK(LocalRunner(network, std::move(sgd), {}).tensor_bytes() == 204'668'736);
}

TEST_CASE("a cap on memory stops with the request, and is not left behind") {
  Settings settings;
  settings.model = "resnet18";
  settings.batch = 8;
  settings.devices = {"ref:3"};
  settings.device_memory = 60'000'000;
  Recorder events;
  expect_error(ErrorKind::resource, {"ref:3", "60000000"},
               [&] { run(small_job(settings, 16), events); });
}

TEST_CASE("top-1 and top-5 count the better logits, ties by class, NaN never") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> logits = {0,   1, 2, 3, 4, 5,  //
                                      5,   5, 0, 0, 0, 0,  //
                                      5,   5, 0, 0, 0, 0,  //
                                      nan, 1, 1, 1, 1, 1};
  const std::vector<std::int64_t> labels = {1, 0, 1, 0};
  EvalSums sums;
  count_top(logits, 6, labels.data(), sums);
  CHECK(sums.top1 == 1);
  CHECK(sums.top5 == 3);
}
