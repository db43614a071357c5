// A pipeline does what one device does: losses, norms, gradients, optimizer state, running
// statistics and weights, to the last bit.
#include <cmath>
#include <limits>
#include <set>

#include "engine/nn/state.h"
#include "engine/parallel/pipeline/schedule_text.h"
#include "engine/parallel/pipeline/schedules.h"
#include "engine/train/batch_feed.h"
#include "kernels/emulator/test_control.h"
#include "tests/engine/train/pipeline_runs.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

// Streams whose work starts late at random, while it lives.
class LateStreams {
 public:
  explicit LateStreams(unsigned seed) {
    emulator::set_stream_mode(emulator::StreamMode::random, seed);
  }
  ~LateStreams() { emulator::set_stream_mode(emulator::StreamMode::threads); }
  LateStreams(const LateStreams&) = delete;
  LateStreams& operator=(const LateStreams&) = delete;
};

// The first array that differs, or how the lists do.
std::string difference(const std::vector<NamedArray>& a, const std::vector<NamedArray>& b) {
  if (a.size() != b.size()) return fmt::format("{} arrays, {} arrays", a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(a[i] == b[i])) return a[i].name + " / " + b[i].name;
  }
  return "";
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

std::vector<double> values_of(const std::vector<NamedArray>& arrays) {
  std::vector<double> values;
  for (const auto& [name, tensor] : to_tensors(arrays)) {
    const std::vector<double> own = tensor.to_vector<double>();
    values.insert(values.end(), own.begin(), own.end());
  }
  return values;
}

bool all_same(const std::vector<std::string>& hashes) {
  return std::set<std::string>(hashes.begin(), hashes.end()).size() == 1;
}

// Replicas agree in every bit; with one device they agree up to the order of sums.
void check_replicas(const PipelineCase& each) {
  INFO(describe(each));
  const RunResult found = run_pipeline(each);
  CHECK(std::ssize(found.hashes) == each.replicas);
  CHECK(all_same(found.hashes));
  if (each.dtype != DType::f64) return;
  const RunResult expected = run_alone(each);
  CHECK(largest_difference(found.losses, expected.losses) < 1e-12);
  CHECK(largest_difference(found.norms, expected.norms) < 1e-11);
  CHECK(largest_difference(values_of(found.gradients), values_of(expected.gradients)) < 1e-11);
  CHECK(largest_difference(values_of(found.tensors.model), values_of(expected.tensors.model)) <
        1e-11);
  CHECK(largest_difference(found.outputs, expected.outputs) < 1e-10);
  CHECK(found.sums.top1 == expected.sums.top1);
  CHECK(found.sums.images == expected.sums.images);
}

void check_equal(const RunResult& found, const RunResult& expected) {
  CHECK(found.losses == expected.losses);
  CHECK(found.norms == expected.norms);
  CHECK_THAT(difference(found.gradients, expected.gradients), Catch::Equals(""));
  CHECK_THAT(difference(found.tensors.model, expected.tensors.model), Catch::Equals(""));
  CHECK_THAT(difference(found.tensors.optimizer, expected.tensors.optimizer), Catch::Equals(""));
  CHECK(found.tensors.optimizer_steps == expected.tensors.optimizer_steps);
  CHECK(std::set<std::string>(found.hashes.begin(), found.hashes.end()) ==
        std::set<std::string>(expected.hashes.begin(), expected.hashes.end()));
  CHECK(found.sums.images == expected.sums.images);
  CHECK(found.sums.top1 == expected.sums.top1);
  CHECK(std::abs(found.sums.loss - expected.sums.loss) < 1e-5);
  CHECK(largest_difference(found.outputs, expected.outputs) < 1e-5);
}

void check_as_alone(const PipelineCase& each) {
  INFO(describe(each));
  check_equal(run_pipeline(each), run_alone(each));
}

// All layouts of up to four stages; `interleaved` takes those of two stages a worker.
std::vector<PipelineCase> layouts_of(const PipelineCase& common) {
  std::vector<PipelineCase> cases;
  for (int stages = 1; stages <= 4; ++stages) {
    for (const char* name : {"fill-drain", "1f1b", "zb-h1"}) {
      PipelineCase each = common;
      each.workers = stages;
      each.schedule.name = name;
      cases.push_back(each);
    }
    if (stages % 2 != 0) continue;
    PipelineCase each = common;
    each.workers = stages / 2;
    each.stages_per_worker = 2;
    each.schedule.name = "interleaved";
    cases.push_back(each);
  }
  return cases;
}

void check_layouts(const PipelineCase& common) {
  const RunResult expected = run_alone(common);
  for (const PipelineCase& each : layouts_of(common)) {
    INFO(describe(each));
    check_equal(run_pipeline(each), expected);
  }
}

}  // namespace

TEST_CASE("one to four stages, all schedules: every bit is that of one device") {
  for (std::int64_t size : {1, 2, 3, 5}) check_layouts({.rule = {.size = size}});
}

TEST_CASE("resnet18 in two and three stages, cut inside residual blocks too") {
  PipelineCase each{.model = "resnet18", .image_size = 32, .rule = {.size = 3}, .steps = 2};
  const RunResult expected = run_alone(each);
  each.workers = 2;
  each.cuts = {13};
  check_equal(run_pipeline(each), expected);
  each.workers = 3;
  each.cuts = {4, 14};
  each.schedule.name = "zb-h1";
  check_equal(run_pipeline(each), expected);
}

TEST_CASE("stages on emulated GPUs, one each or all on one, have the bits of one device") {
  PipelineCase each{.rule = {.size = 3}, .steps = 2, .device = "emu"};
  const RunResult expected = run_alone(each);
  for (bool one_device : {false, true}) {
    each.one_device = one_device;
    each.workers = 3;
    each.stages_per_worker = 1;
    each.schedule.name = "zb-h1";
    check_equal(run_pipeline(each), expected);
    each.workers = each.stages_per_worker = 2;
    each.schedule.name = "interleaved";
    const LateStreams late(5);
    check_equal(run_pipeline(each), expected);
  }
}

TEST_CASE("replicas that share an emulated GPU add their gradients over the host") {
  check_replicas({.replicas = 2,
                  .workers = 2,
                  .bn = "sync",
                  .steps = 2,
                  .device = "emu",
                  .one_device = true,
                  .dtype = DType::f64});
}

TEST_CASE("a tensor that is relayed over a whole stage stays what it is") {
  // Stage 1 is one convolution within the block: the shortcut passes it by.
  for (const char* name : {"1f1b", "zb-h1"}) {
    check_as_alone(
        {.workers = 3, .cuts = {2, 3}, .schedule = {.name = name}, .rule = {.count = 4}});
  }
}

TEST_CASE("stages without parameters are stages too") {
  check_as_alone({.workers = 3, .cuts = {8, 9}, .rule = {.count = 3}});
}

TEST_CASE("all modes of batch norm, recomputed or not") {
  for (const char* bn : {"micro", "deferred", "frozen", "sync"}) {
    for (bool recompute : {false, true}) {
      check_as_alone({.workers = 2,
                      .rule = {.size = 3},
                      .bn = bn,
                      .recompute = recompute,
                      .batches = {8, 5},
                      .steps = 2});
    }
  }
}

TEST_CASE("windows of several batches, the last one short, clipped, with other optimizers") {
  for (const char* optimizer : {"sgd", "adamw"}) {
    check_as_alone({.workers = 2,
                    .schedule = {.name = "zb-h1"},
                    .rule = {.count = 3},
                    .clip_grad = 0.1,
                    .optimizer = optimizer,
                    .batches = {7, 7, 2}});
  }
  check_as_alone({.workers = 2,
                  .stages_per_worker = 2,
                  .schedule = {.name = "interleaved"},
                  .rule = {.count = 5},
                  .clip_grad = 0.1,
                  .batches = {3, 1}});
}

TEST_CASE("SG after W, and more forwards ahead, change no bit") {
  check_as_alone({.workers = 3, .schedule = {.gradient_after_weight = true}, .rule = {.size = 1}});
  check_as_alone({.workers = 3, .schedule = {.warm_up = {4, 2, 0}}, .rule = {.size = 1}});
}

TEST_CASE("two replicas of two stages are equal, and equal to one device in double") {
  PipelineCase each{.replicas = 2, .workers = 2};
  each.clip_grad = 0.1;
  each.batches = {8, 4};
  each.steps = 2;
  each.device = "ref";
  each.dtype = DType::f64;
  for (const char* bn : {"frozen", "sync"}) {
    for (const char* name : {"1f1b", "zb-h1"}) {
      each.bn = bn;
      each.schedule.name = name;
      // In sync modes one device has the whole batch normalised together.
      if (each.bn == "frozen") each.rule.count = 2;
      if (each.bn == "sync") each.rule = {};
      check_replicas(each);
    }
  }
}

TEST_CASE("uneven shares, micro-batches empty on one replica, and a replica without images") {
  // 3 images: 2 and 1, so the second replica has no second micro-batch; 1 image: it has none.
  for (const std::vector<std::int64_t>& batches :
       {std::vector<std::int64_t>{3}, {7, 3}, {1}, {3, 1}}) {
    PipelineCase each{.replicas = 2,
                      .workers = 2,
                      .rule = {.size = 1},
                      .bn = "frozen",
                      .batches = batches,
                      .steps = 2,
                      .device = "ref",
                      .dtype = DType::f64};
    check_replicas(each);
    each.schedule.name = "zb-h1";
    each.recompute = true;
    check_replicas(each);
    each.device = "cpu";
    each.dtype = DType::f32;
    each.optimizer = "adamw";
    each.bn = batches.front() == 1 ? "frozen" : "sync";
    check_replicas(each);
  }
  check_replicas({.replicas = 3,
                  .workers = 1,
                  .stages_per_worker = 2,
                  .schedule = {.name = "interleaved"},
                  .rule = {.size = 2},
                  .batches = {8}});
}

TEST_CASE("what is not finite stops all workers with the words of one device") {
  PipelineCase each{.workers = 2, .rule = {.size = 4}, .steps = 2, .bad_step = 2};
  std::string expected;
  try {
    run_alone(each);
  } catch (const Error& error) {
    expected = error.text();
  }
  CHECK(expected == "step 2: the loss is nan; the first value that is not finite is inf in input");
  for (int workers : {1, 2, 3}) {
    each.workers = workers;
    expect_error(ErrorKind::numerics, {expected}, [&] { run_pipeline(each); });
  }
}

TEST_CASE("a bad weight or gradient is named with its layer and the rank that holds it") {
  const PipelineCase each{.workers = 3, .rule = {.size = 4}};
  for (const char* name : {"conv1", "block.conv2", "fc"}) {
    RunningPipeline pipeline(each);
    pipeline.step(each, 1);
    for (const auto& network : pipeline.networks) {
      for (const auto& [parameter, tensor] : network->named_parameters()) {
        if (parameter == std::string(name) + ".weight") Tensor(tensor).fill_(INFINITY);
      }
    }
    const std::string words = "step 2: the loss is nan; the first value that is not finite is";
    expect_error(ErrorKind::numerics, {words, std::string(" in ") + name},
                 [&] { pipeline.step(each, 2); });
  }
  RunningPipeline pipeline(each);
  const auto weight = pipeline.networks[1]->named_parameters().at(6);
  weight.second.on_gradient([](Tensor& tensor) { tensor.grad().fill_(NAN); });
  try {
    pipeline.step(each, 1);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::numerics);
    CHECK(error.text() == "step 1: the gradient of " + weight.first + " holds nan");
    CHECK(error.rank() == 1);
  }
}

TEST_CASE("training goes on in another layout, bit for bit") {
  for (const char* optimizer : {"sgd", "adamw"}) {
    PipelineCase each{.rule = {.size = 3}, .optimizer = optimizer};
    each.steps = 4;
    const RunResult expected = run_alone(each);
    TrainingTensors tensors;
    for (int step = 1; step <= 4; ++step) {
      each.workers = step;
      RunningPipeline pipeline(each);
      if (step > 1) pipeline.runner->load(tensors);
      CHECK(pipeline.runner->tensor_bytes() > 0);
      CHECK(pipeline.step(each, step).loss == expected.losses[static_cast<std::size_t>(step - 1)]);
      tensors = pipeline.runner->tensors();
    }
    CHECK_THAT(difference(tensors.model, expected.tensors.model), Catch::Equals(""));
    CHECK_THAT(difference(tensors.optimizer, expected.tensors.optimizer), Catch::Equals(""));
    tensors.model.back().name = "nowhere";
    each.workers = 2;
    RunningPipeline pipeline(each);
    expect_error(ErrorKind::checkpoint, {"nowhere"}, [&] { pipeline.runner->load(tensors); });
  }
}

TEST_CASE("a table from a file runs where it fits, and is refused before the first step") {
  const Schedule made = make_schedule({.name = "zb-h1", .workers = 2, .micro_batches = {0, 1, 2}});
  PipelineCase each{.workers = 2, .rule = {.count = 3}};
  each.schedule.table = parse_schedule(write_schedule(made));
  each.schedule.table_source = "my.txt";
  check_as_alone(each);
  each.batches = {8, 8};
  RunningPipeline pipeline(each);
  expect_error(ErrorKind::usage, {"my.txt", "3 micro-batches", "6"}, [&] {
    pipeline.runner->prepare({{{8}, {8}}});
  });
  Schedule swapped = made;
  std::swap(swapped.lines[0], swapped.lines[1]);
  each.schedule.table = swapped;
  RunningPipeline other(each);
  expect_error(ErrorKind::usage, {"my.txt", "stage 0 is on worker 1"},
               [&] { other.runner->prepare({{{8}}}); });
}

TEST_CASE("layouts and cuts that do not fit are refused") {
  expect_error(ErrorKind::usage, {"stage 1 of 3", "empty"}, [] {
    RunningPipeline({.workers = 3, .cuts = {4, 4}});
  });
  expect_error(ErrorKind::usage, {"1 cuts for 3 stages"},
               [] { RunningPipeline({.workers = 3, .cuts = {4}}); });
}

TEST_CASE("a worker is in one state at a time, and a forecast stands beside it") {
  for (bool recompute : {false, true}) {
    PipelineCase each{
        .replicas = 2, .workers = 2, .rule = {.count = 4}, .recompute = recompute, .batches = {16}};
    RunningPipeline pipeline(each);
    pipeline.step(each, 1);
    pipeline.runner->keep_spans(true);
    pipeline.step(each, 2);
    pipeline.runner->keep_spans(false);
    pipeline.step(each, 3);
    const SpansEvent spans = pipeline.runner->take_spans();
    const WorkersEvent event = pipeline.runner->account();
    CHECK(event.steps == 3);
    CHECK(event.step_s > 0);
    CHECK(event.predicted_step_s > 0);
    REQUIRE(event.workers.size() == 4);
    for (int rank = 0; rank < 4; ++rank) {
      const WorkerAccount& account = event.workers[static_cast<std::size_t>(rank)];
      CHECK(account.worker == rank);
      CHECK(account.replica == rank / 2);
      CHECK(account.stages == std::vector<int>{rank % 2});
      CHECK(account.steps == 3);
      CHECK(account.peak_bytes > 0);
      for (WorkerState state : {WorkerState::forward, WorkerState::backward_input,
                                WorkerState::optimizer, WorkerState::host}) {
        CHECK(at(account.measured, state) > 0);
        CHECK(at(account.predicted, state) > 0);
      }
      CHECK((at(account.measured, WorkerState::recompute) > 0) == recompute);
      CHECK((at(account.predicted, WorkerState::recompute) > 0) == recompute);
      CHECK(std::abs(total(account.predicted) - 3 * event.predicted_step_s) < 1e-9);
    }
    // One step's spans fill its time without gaps or overlaps.
    REQUIRE(spans.steps.size() == 1);
    CHECK(spans.steps[0].step == 2);
    REQUIRE(spans.steps[0].workers.size() == 4);
    for (const WorkerSpans& worker : spans.steps[0].workers) {
      CHECK(worker.replica == worker.worker / 2);
      CHECK_FALSE(worker.predicted.empty());
      double sum = 0, last = spans.steps[0].begin - 1;
      for (const Span& span : worker.measured) {
        CHECK(span.begin >= last);
        last = span.end;
        sum += span.end - span.begin;
      }
      CHECK(sum > 0);
      CHECK(sum <= last - worker.measured.front().begin + 1e-9);
    }
    CHECK(pipeline.runner->account().workers.empty());
    CHECK(pipeline.runner->take_spans().steps.empty());
  }
}

TEST_CASE("a step's states are its wall time") {
  const PipelineCase each{.workers = 2, .rule = {.count = 4}, .batches = {32}};
  RunningPipeline pipeline(each);
  pipeline.step(each, 1);
  pipeline.runner->account();
  ReadyBatches feed({made_up_batch(each, 0, 32)});
  const double begin = StateClock::now();
  pipeline.runner->step({.step = 2, .images = 32, .lr = 0.1, .shares = {{32}}}, feed);
  const double end = StateClock::now();
  for (const WorkerAccount& account : pipeline.runner->account().workers) {
    CHECK(total(account.measured) <= end - begin);
    CHECK(total(account.measured) > 0);
  }
}

TEST_CASE("The memory of each worker is known before the first step, and bits stay as they are") {
  PipelineCase each;
  each.model = "resnet18";
  each.image_size = 32;
  each.workers = 2;
  each.batches = {8};
  each.rule = {.size = 2};
  each.steps = 2;
  const auto forecast_of = [](const PipelineCase& one) {
    INFO(describe(one));
    RunningPipeline pipeline(one);
    pipeline.runner->prepare({{{8}}});
    std::vector<double> losses, forecasts;
    for (int step = 1; step <= one.steps; ++step) {
      losses.push_back(pipeline.step(one, step).loss);
    }
    const WorkersEvent event = pipeline.runner->account();  // before others use the device
    CHECK(losses == run_alone(one).losses);
    for (const WorkerAccount& account : event.workers) {
      forecasts.push_back(account.predicted_peak_bytes);
      if (account.worker == 0) continue;  // this test's own tensors are on its device too
      CHECK(account.predicted_peak_bytes >= 0.95 * account.peak_bytes);
      CHECK(account.predicted_peak_bytes <= 1.3 * account.peak_bytes);
    }
    REQUIRE(forecasts.size() == 2);
    return forecasts;
  };
  const std::vector<double> kept = forecast_of(each);
  each.recompute = true;
  CHECK(forecast_of(each).front() < kept.front());
  each.recompute = false;
  each.schedule.name = "zb-h1";
  forecast_of(each);
}
