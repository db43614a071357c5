// Training over stages is training on one device, to the last bit, also where a run stops in one
// layout and goes on in another.
#include <cmath>

#include "engine/nn/state.h"
#include "engine/train/setup.h"
#include "tests/engine/train/training.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

Settings in_stages(int stages, const std::string& cut) {
  Settings settings;
  settings.stages = std::to_string(stages);
  settings.cut = cut;
  settings.batch = 8;
  settings.lr = 0.05;
  settings.seed = 5;
  settings.eval_every = 1;
  return settings;
}

Settings on_one_device(Settings settings) {
  settings.stages = Settings().stages;
  settings.cut = Settings().cut;
  return settings;
}

struct Result {
  Recorder events;
  TrainingOutcome outcome;
};

// As many workers as the settings' stages and `replicas` ask for.
Result result_of(const Settings& settings, std::int64_t images, int replicas = 1) {
  Result result;
  const int stages = std::stoi(settings.stages);
  const int each = settings.schedule == "interleaved" ? stages / 2 : stages;
  const TrainingJob job = tiny_job(settings, images);
  result.outcome = run_replicas(job, replicas * each, result.events);
  return result;
}

void check_as_one_device(const Settings& settings, std::int64_t images) {
  INFO("stages " << settings.stages << ", " << settings.schedule << ", bn " << settings.bn);
  Recorder alone;
  const TrainingOutcome expected = run(tiny_job(on_one_device(settings), images), alone);
  const Result staged = result_of(settings, images);
  CHECK(figures(staged.events) == figures(alone));
  CHECK(staged.outcome.end.weights_hash == expected.end.weights_hash);
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double squares = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    squares += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(squares / norm);
}

// The gradients after one step of `images` images.
std::vector<double> gradients_of(Settings settings, std::int64_t images, int workers) {
  settings.steps = 1;
  settings.lr = 0;
  settings.eval_every.reset();
  const TrainingJob job = tiny_job(settings, images);
  Recorder events;
  if (workers == 1) {
    run(job, events);
  } else {
    run_replicas(job, workers, events);
  }
  std::vector<double> values;
  for (const auto& [name, parameter] : job.network->named_parameters()) {
    REQUIRE(parameter.grad().defined());
    for (double value : parameter.grad().to_vector<double>()) values.push_back(value);
  }
  return values;
}

}  // namespace

TEST_CASE("two and three stages give the bits of one device, evaluations too") {
  for (const char* schedule : {"fill-drain", "1f1b", "zb-h1"}) {
    Settings settings = in_stages(2, "conv2");
    settings.schedule = schedule;
    settings.micro_batch_size = 3;
    check_as_one_device(settings, 21);
  }
  Settings settings = in_stages(3, "bn1,bn2");  // cuts between convolution and batch norm
  settings.micro_batches = 3;
  settings.accumulate = 2;
  settings.clip_grad = 0.1;
  settings.bn = "deferred";
  check_as_one_device(settings, 21);
  settings.stages = "4";
  settings.cut = "bn1,conv2,fc";
  settings.schedule = "interleaved";
  check_as_one_device(settings, 21);
}

// S01 and its kin: whatever a batch is divided into, each image counts the same.
TEST_CASE("short batches and uneven micro-batches have the gradient of the whole batch") {
  struct Case {
    std::int64_t batch, images;
    std::optional<std::int64_t> count;
    int stages;
  };
  for (const Case& each : {Case{8, 8, 3, 2},     // 3, 3, 2
                           Case{8, 8, 2, 4},     // fewer micro-batches than stages
                           Case{8, 8, 9, 2},     // 8 of one image
                           Case{5, 5, 4, 2},     // 2, 1, 1, 1
                           Case{8, 1, 4, 2}}) {  // a batch of one
    INFO(each.images << " images in " << *each.count << ", " << each.stages << " stages");
    Settings settings = in_stages(each.stages, each.stages == 2 ? "conv2" : "bn1,conv2,fc");
    settings.bn = "frozen";
    settings.batch = each.batch;
    const std::vector<double> whole = gradients_of(on_one_device(settings), each.images, 1);
    settings.micro_batches = each.count;
    CHECK(distance(gradients_of(settings, each.images, each.stages), whole) < 1e-5);
  }
}

TEST_CASE("replicas of stages share batches that are too small for all of them") {
  Settings settings = in_stages(2, "conv2");
  settings.bn = "frozen";
  settings.batch = 4;
  settings.micro_batches = 2;
  const Result staged = result_of(settings, 13, 3);  // shares 2, 1, 1 and 1, 0, 0
  Recorder alone;
  Settings one = on_one_device(settings);
  run(tiny_job(one, 13), alone);
  REQUIRE(staged.events.steps.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(staged.events.steps[i].images == alone.steps[i].images);
    CHECK(std::abs(staged.events.steps[i].loss - alone.steps[i].loss) < 1e-4);
  }
}

TEST_CASE("one value per channel in a micro-batch of a stage is refused before the first step") {
  Settings settings;
  settings.model = "resnet18";
  settings.stages = "2";
  settings.cut = "layer3";
  settings.batch = 8;
  settings.micro_batches = 5;  // 2, 2, 2, 1, 1
  Recorder events;
  expect_error(ErrorKind::usage, {"layer4.0.bn1", "1 value per channel", "1 image"},
               [&] { run_replicas(small_job(settings, 8), 2, events); });
  CHECK(events.steps.empty());
}

TEST_CASE("a run goes on bit for bit with another number of stages") {
  TemporaryFolder folder;
  Settings settings = in_stages(2, "conv2");
  settings.micro_batch_size = 3;
  settings.epochs = 3;
  settings.optimizer = "adamw";
  settings.lr = 0.01;
  const Result whole = result_of(settings, 30);
  settings.checkpoint = folder / "run";
  settings.steps = 6;  // in the middle of the second epoch
  Recorder parts;
  run_replicas(tiny_job(settings, 30), 2, parts);
  settings.resume = "yes";
  settings.steps = 9;
  settings.stages = "3";
  settings.cut = "bn1,fc";
  run_replicas(tiny_job(settings, 30), 3, parts);
  settings.steps.reset();
  const TrainingOutcome last = run(tiny_job(on_one_device(settings), 30), parts);
  CHECK(figures(parts) == figures(whole.events));
  CHECK(last.end.weights_hash == whole.outcome.end.weights_hash);
}

// K05: in the middle of an epoch of two replicas of two stages, on with other layouts.
TEST_CASE("a run of 2 x 2 workers goes on in any layout: equal hashes, each image once") {
  TemporaryFolder folder;
  Settings settings = in_stages(2, "conv2");
  settings.micro_batches = 2;
  settings.epochs = 2;
  settings.steps = 6;
  settings.checkpoint = folder / "run";
  const Result first = result_of(settings, 30, 2);  // 4 steps an epoch
  const std::string saved = first.outcome.end.weights_hash;
  struct Layout {
    const char *stages, *cut;
    int workers;
  };
  for (const Layout& layout :
       {Layout{"1", "auto", 1}, Layout{"1", "auto", 2}, Layout{"4", "bn1,conv2,fc", 4}}) {
    INFO(layout.stages << " stages on " << layout.workers);
    Settings next = settings;
    next.stages = layout.stages;
    next.cut = layout.cut;
    next.resume = "yes";
    next.checkpoint = folder / "copy";
    std::filesystem::remove_all(folder / "copy");
    std::filesystem::copy(
        folder / "run", folder / "copy",
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
    const auto go_on = [&](Recorder& events) {
      const TrainingJob job = tiny_job(next, 30);
      return layout.workers == 1 ? run(job, events) : run_replicas(job, layout.workers, events);
    };
    Recorder loaded;  // at the end already: nothing but loading
    CHECK(go_on(loaded).end.weights_hash == saved);
    CHECK(loaded.steps.empty());
    next.steps.reset();
    Recorder rest;
    go_on(rest);
    std::int64_t images = 0;
    for (const StepEvent& step : rest.steps) images += step.images;
    CHECK(images == 14);
    CHECK(rest.evals.size() == 1);
  }
}

TEST_CASE("weights of a file reach all stages of all replicas") {
  TemporaryFolder folder;
  Settings settings = in_stages(2, "conv2");
  settings.steps = 1;
  settings.lr = 0;
  settings.bn = "frozen";
  settings.seed = 3;
  save_weights(*tiny_job(settings, 12).network, folder / "w.safetensors");
  settings.seed = 4;
  settings.weights = folder / "w.safetensors";
  const Result staged = result_of(settings, 12, 2);
  Recorder alone;
  const TrainingOutcome expected = run(tiny_job(on_one_device(settings), 12), alone);
  CHECK(staged.outcome.end.weights_hash == expected.end.weights_hash);
}
