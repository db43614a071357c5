// Resume equals never having stopped, and two equal runs are equal: bit for bit.
#include "tests/engine/train/training.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

constexpr std::int64_t kImages = 60;  // 8 steps an epoch, the last one of 4 images

Settings settings_of(const std::string& checkpoint) {
  Settings settings;
  settings.model = "resnet18";
  settings.batch = 8;
  settings.epochs = 3;
  settings.lr = 0.002;
  settings.lr_schedule = "cosine";
  settings.warmup = 3;
  settings.seed = 5;
  settings.eval_every = 1;
  settings.checkpoint = checkpoint;
  return settings;
}

struct Run {
  Recorder events;
  TrainingOutcome outcome;
};

Run uninterrupted() {
  Run result;
  result.outcome = run(small_job(settings_of(""), kImages), result.events);
  return result;
}

// Runs until `stop_when` asks to stop, then on from the checkpoint; both parts' events in one.
Run in_two_parts(const std::function<void(Recorder&, StopRequest&)>& stop_when) {
  TemporaryFolder folder;
  Settings settings = settings_of(folder / "run");
  Run result;
  StopRequest stop;
  stop_when(result.events, stop);
  const TrainingOutcome first = train(small_job(settings, kImages), {&result.events}, stop);
  CHECK(first.stopped);
  CHECK_FALSE(first.checkpoint.empty());
  result.events.after_step = result.events.during_eval = nullptr;
  settings.resume = "yes";
  settings.loader_threads = 3;
  result.outcome = run(small_job(settings, kImages), result.events);
  return result;
}

}  // namespace

TEST_CASE("two equal runs and a resumed one are bitwise equal", "[slow]") {
  const Run whole = uninterrupted();
  REQUIRE(whole.events.steps.size() == 24);
  REQUIRE(whole.events.evals.size() == 3);
  CHECK(whole.events.steps.back().loss < whole.events.steps.front().loss);

  const Run again = uninterrupted();
  CHECK(figures(again.events) == figures(whole.events));
  CHECK(again.outcome.end.weights_hash == whole.outcome.end.weights_hash);

  for (std::int64_t step : {1, 5, 8, 13}) {
    INFO("stopped after step " << step);
    const Run parts = in_two_parts([step](Recorder& events, StopRequest& stop) {
      events.after_step = [step, &stop](std::int64_t done) {
        if (done == step) stop.request();
      };
    });
    CHECK(figures(parts.events) == figures(whole.events));
    CHECK(parts.outcome.end.weights_hash == whole.outcome.end.weights_hash);
  }

  INFO("stopped during the first evaluation");
  const Run parts = in_two_parts([](Recorder& events, StopRequest& stop) {
    events.during_eval = [&stop](std::int64_t done) {
      if (done >= 8) stop.request();
    };
  });
  CHECK(figures(parts.events) == figures(whole.events));
  CHECK(parts.outcome.end.weights_hash == whole.outcome.end.weights_hash);
}

TEST_CASE("--steps stops and saves there, and the rest follows with --resume", "[slow]") {
  TemporaryFolder folder;
  Settings settings = settings_of(folder / "run");
  settings.steps = 5;
  Recorder events;
  const TrainingOutcome first = run(small_job(settings, kImages), events);
  CHECK_FALSE(first.stopped);
  CHECK(first.end.steps == 5);
  settings.steps.reset();
  settings.resume = "yes";
  const TrainingOutcome second = run(small_job(settings, kImages), events);
  const Run whole = uninterrupted();
  CHECK(figures(events) == figures(whole.events));
  CHECK(second.end.weights_hash == whole.outcome.end.weights_hash);
}

TEST_CASE("nothing starts afresh silently") {
  TemporaryFolder folder;
  Settings settings;
  settings.model = "toy";
  settings.lr = 0.01;
  settings.batch = 8;
  settings.checkpoint = folder / "run";
  settings.resume = "yes";
  Recorder events;
  expect_error(ErrorKind::checkpoint, {"no valid checkpoint"},
               [&] { run(small_job(settings, 20), events); });
  settings.resume = "auto";
  run(small_job(settings, 20), events);
  settings.resume = "";
  expect_error(ErrorKind::usage, {"holds a run", "--resume"},
               [&] { run(small_job(settings, 20), events); });

  settings.resume = "yes";
  SECTION("another seed") {
    settings.seed = 1;
    expect_error(ErrorKind::usage, {"seed", "0", "1"},
                 [&] { run(small_job(settings, 20), events); });
  }
  SECTION("another model") {
    settings.model = "line";
    expect_error(ErrorKind::usage, {"model", "toy", "line"},
                 [&] { run(small_job(settings, 20), events); });
  }
  SECTION("other data") {
    expect_error(ErrorKind::data, {"data differ"}, [&] { run(small_job(settings, 21), events); });
  }
  SECTION("another optimizer") {
    settings.optimizer = "adamw";
    expect_error(ErrorKind::usage, {"optimizer", "sgd", "adamw"},
                 [&] { run(small_job(settings, 20), events); });
  }
  SECTION("no folder to resume from") {
    settings.checkpoint = "";
    expect_error(ErrorKind::usage, {"--checkpoint"}, [&] { run(small_job(settings, 20), events); });
  }
}

TEST_CASE("a wish to stop during the last evaluation leaves it for the resumed run") {
  TemporaryFolder folder;
  Settings settings = settings_of(folder / "run");
  settings.epochs = 1;
  Recorder events;
  StopRequest stop;
  events.during_eval = [&stop](std::int64_t done) {
    if (done >= 8) stop.request();
  };
  const TrainingOutcome first = train(small_job(settings, 40), {&events}, stop);
  CHECK(first.stopped);
  CHECK(events.evals.empty());
  events.during_eval = nullptr;
  settings.resume = "yes";
  const TrainingOutcome second = run(small_job(settings, 40), events);
  CHECK_FALSE(second.stopped);
  CHECK(events.evals.size() == 1);
}

TEST_CASE("a named checkpoint is gone on from, and is never written into") {
  TemporaryFolder folder;
  Settings settings;
  settings.model = "toy";
  settings.lr = 0.01;
  settings.batch = 5;
  settings.epochs = 2;
  settings.save_every = 1;
  settings.keep = 20;
  settings.checkpoint = folder / "run";
  Recorder whole;
  const TrainingOutcome expected = run(small_job(settings, 20), whole);
  settings.checkpoint = folder / "run/step-3";
  Recorder parts;
  expect_error(ErrorKind::usage, {"step-3", "one checkpoint", "--resume"},
               [&] { run(small_job(settings, 20), parts); });
  settings.resume = "yes";
  const TrainingOutcome second = run(small_job(settings, 20), parts);
  CHECK(parts.steps.front().step == 4);
  CHECK(second.end.weights_hash == expected.end.weights_hash);
  settings.weights = "some.safetensors";
  expect_error(ErrorKind::usage, {"--weights some.safetensors"},
               [&] { run(small_job(settings, 20), parts); });
}

TEST_CASE("what changed over a resume is said, and only that") {
  TemporaryFolder folder;
  Settings settings;
  settings.model = "toy";
  settings.lr = 0.01;
  settings.steps = 3;
  settings.epochs = 2;
  settings.batch = 5;
  settings.checkpoint = folder / "run";
  auto job = [&settings](const std::map<std::string, std::string>& json) {
    TrainingJob result = small_job(settings, 20);
    result.settings_json = json;
    return result;
  };
  Recorder events;
  run(job({{"weight-decay", "0.0001"}, {"lr", "0.01"}, {"momentum", "0.9"}, {"log", "\"a\""}}),
      events);
  settings.resume = "yes";
  settings.steps = 4;
  events.notes.clear();
  run(job({{"weight-decay", "1e-04"}, {"lr", "0.02"}, {"momentum", "0.9"}, {"log", "\"b\""}}),
      events);
  std::string notes;
  for (const std::string& note : events.notes) notes += note + "\n";
  CHECK(notes.find("--lr was 0.01, is 0.02 now") != std::string::npos);
  CHECK(notes.find("weight-decay") == std::string::npos);
  CHECK(notes.find("--log") == std::string::npos);
  settings.momentum = 0;
  expect_error(ErrorKind::usage, {"--momentum is 0", "0.9"}, [&] {
    run(job({{"momentum", "0"}}), events);
  });
}

TEST_CASE("the best epoch is kept whatever the saving interval is") {
  TemporaryFolder folder;
  Settings settings;
  settings.model = "toy";
  settings.lr = 0.01;
  settings.batch = 10;
  settings.epochs = 3;
  settings.save_every = 100;
  settings.checkpoint = folder / "run";
  Recorder events;
  run(small_job(settings, 20), events);
  CHECK(std::filesystem::exists(folder / "run/best/model.safetensors"));
}
