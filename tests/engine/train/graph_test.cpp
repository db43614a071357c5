// Steps that a graph runs against the same steps without one, on an emulated GPU: bit for bit.
#include "engine/train/graph_runner.h"

#include <limits>

#include "engine/io/named_array.h"
#include "engine/train/batch_feed.h"
#include "engine/train/setup.h"
#include "tests/engine/train/training.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

// 5 steps an epoch, the last one of 2 images; learning rates of all of them differ.
Settings settings_of(bool graph) {
  Settings settings;
  settings.model = "resnet18";
  settings.devices = {"emu:0"};
  settings.batch = 4;
  settings.epochs = 2;
  settings.lr = 0.01;
  settings.lr_schedule = "cosine";
  settings.warmup = 2;
  settings.clip_grad = 1;
  settings.eval_every = 1;
  settings.graph = graph;
  return settings;
}

struct Run {
  Recorder events;
  TrainingOutcome outcome;
};

Run trained(const Settings& settings, std::int64_t images) {
  Run result;
  result.outcome = run(tiny_job(settings, images), result.events);
  return result;
}

void check_equal(const Run& a, const Run& b) {
  CHECK(figures(a.events) == figures(b.events));
  CHECK(a.outcome.end.weights_hash == b.outcome.end.weights_hash);
}

HostBatch batch_of(std::int64_t images, std::int64_t first) {
  HostBatch batch;
  batch.images = batch.batch_images = images;
  batch.shape = Shape{images, 3, 8, 8};
  for (std::int64_t i = first; i < first + images; ++i) {
    for (double value : RandomStream(7, std::to_string(i)).normal(3 * 8 * 8)) {
      batch.x.push_back(static_cast<float>(value));
    }
    batch.labels.push_back(i % 3);
  }
  return batch;
}

std::unique_ptr<StepRunner> runner_of(const Settings& settings) {
  return make_runner(tiny_job(settings, 8));
}

StepResult step(StepRunner& runner, const std::vector<HostBatch>& batches, double lr) {
  Window window{.step = 1, .images = 0, .lr = lr};
  for (const HostBatch& batch : batches) {
    window.images += batch.images;
    window.shares.push_back({batch.images});
  }
  ReadyBatches feed(batches);
  return runner.step(window, feed);
}

bool equal(const std::vector<NamedArray>& a, const std::vector<NamedArray>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].name != b[i].name || a[i].bytes != b[i].bytes) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a graph trains resnet18 to the bits of a run without one") {
  Run runs[2];
  for (bool graph : {false, true}) {
    Settings settings = settings_of(graph);
    settings.epochs = 1;
    settings.batch = 3;
    runs[graph].outcome = run(small_job(settings, 11), runs[graph].events);
  }
  REQUIRE(runs[0].events.steps.size() == 4);
  CHECK(runs[0].events.steps.back().images == 2);
  check_equal(runs[0], runs[1]);
}

TEST_CASE("a graph keeps the bits with micro-batches, accumulation and every batch norm") {
  for (const char* bn : {"micro", "deferred", "frozen"}) {
    for (const char* precision : {"fp32", "bf16"}) {
      INFO(bn << ", " << precision);
      Run runs[2];
      for (bool graph : {false, true}) {
        Settings settings = settings_of(graph);
        settings.bn = bn;
        settings.precision = precision;
        settings.accumulate = 2;
        settings.micro_batches = 2;
        runs[graph] = trained(settings, 36);
      }
      REQUIRE(runs[0].events.steps.size() == 10);
      check_equal(runs[0], runs[1]);
    }
  }
}

TEST_CASE("a run with a graph stops and goes on, with or without it") {
  const Run whole = trained(settings_of(false), 18);
  for (bool graph_later : {true, false}) {
    TemporaryFolder folder;
    Settings settings = settings_of(true);
    settings.checkpoint = folder / "run";
    Run parts;
    StopRequest stop;
    parts.events.after_step = [&stop](std::int64_t done) {
      if (done == 4) stop.request();
    };
    CHECK(train(tiny_job(settings, 18), {&parts.events}, stop).stopped);
    parts.events.after_step = nullptr;
    settings.resume = "yes";
    settings.graph = graph_later;
    parts.outcome = run(tiny_job(settings, 18), parts.events);
    check_equal(parts, whole);
  }
}

TEST_CASE("a graph is launched for each window like its own, from the second one on") {
  const auto plain = runner_of(settings_of(false)), with_graph = runner_of(settings_of(true));
  auto& runner = dynamic_cast<GraphRunner&>(*with_graph);
  const std::vector<std::int64_t> sizes = {2, 4, 4, 4, 2, 4, 3, 3, 4};
  const std::vector<std::int64_t> launches = {0, 0, 1, 2, 2, 3, 3, 3, 4};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    INFO("step " << i);
    const auto first = static_cast<std::int64_t>(10 * i);
    const std::vector<HostBatch> batches = {batch_of(sizes[i], first)};
    const double lr = 0.01 * static_cast<double>(i + 1);
    const StepResult expected = step(*plain, batches, lr), found = step(runner, batches, lr);
    CHECK(found.loss == expected.loss);
    CHECK(found.grad_norm == expected.grad_norm);
    CHECK(runner.launches() == launches[i]);
    CHECK(equal(runner.gradients(), plain->gradients()));
    CHECK(equal(runner.tensors().model, plain->tensors().model));
  }
  // Other values: the graph is made anew.
  const TrainingTensors start = runner_of(settings_of(false))->tensors();
  plain->load(start);
  runner.load(start);
  for (std::int64_t i : {0, 1, 2}) {
    const std::vector<HostBatch> batches = {batch_of(4, i), batch_of(1, i + 4)};
    CHECK(step(runner, batches, 0.1).loss == step(*plain, batches, 0.1).loss);
  }
  CHECK(runner.launches() == 6);
  CHECK(runner.weights_hashes() == plain->weights_hashes());
}

TEST_CASE("values that are not finite are told of steps that a graph runs") {
  const auto runner = runner_of(settings_of(true));
  HostBatch bad = batch_of(4, 0);
  for (int i = 0; i < 3; ++i) step(*runner, {batch_of(4, 0)}, 0.01);
  bad.x[5] = std::numeric_limits<float>::infinity();
  expect_error(ErrorKind::numerics, {"step 1: the loss is nan", "inf in input"},
               [&] { step(*runner, {bad}, 0.01); });
}

TEST_CASE("a graph needs one GPU alone") {
  Settings settings = settings_of(true);
  settings.devices = {"cpu:0"};
  check_error([&] { runner_of(settings); }, ErrorKind::usage,
              "--graph: cpu:0 records no graphs, expected cuda:K or emu:K");
  Recorder events;
  check_error([&] { run_replicas(tiny_job(settings, 8), 2, events, "emu"); }, ErrorKind::usage,
              "--graph records the step of one device alone, but there are 2 workers");
}
