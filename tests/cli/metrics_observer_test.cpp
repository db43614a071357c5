#include "cli/metrics_observer.h"

#include <optional>

#include "tests/cli/cli_test.h"

using namespace convoy;
using namespace convoy::cli;

namespace {

StepEvent step(std::int64_t number) {
  StepEvent event;
  event.step = number;
  event.epoch = 1;
  event.loss = 0.1;
  event.lr = 0.001;
  event.images = 16;
  event.seconds = 0.5;
  event.grad_norm = 2;
  return event;
}

/// A run that does the steps after `start` up to `end` and, if it gets there, evaluates after
/// step 3.
std::string run(const std::string& path, std::int64_t start, std::int64_t end) {
  Options options;
  options.settings.log = path;
  MetricsObserver observer(options, {{"convoy", "1"}});
  RunInfo info;
  info.start_step = start;
  observer.on_run(info);
  for (std::int64_t i = start + 1; i <= end; ++i) {
    observer.on_step(step(i));
    if (i == 3) observer.on_eval({1, 0.5, 0.25, 0.75, 100});
  }
  observer.on_end({end, 1.5, "abc", ""});
  return path;
}

/// The lines of the types that a resumed run shares with one that never stopped.
std::string steps_and_evals(const std::string& text) {
  std::string kept;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(R"({"type":"run")")) kept += line + "\n";
  }
  return kept;
}

}  // namespace

TEST_CASE("metric lines have the fields of the design") {
  CHECK(step_line(step(7)) ==
        R"({"type":"step","step":7,"epoch":1,"loss":0.1,"lr":0.001,"images":16,)"
        R"("images_per_s":32,"grad_norm":2})");
  CHECK(eval_line({2, 0.5, 0.25, 0.75, 16777217}) ==
        R"({"type":"eval","epoch":2,"loss":0.5,"top1":0.25,"top5":0.75,"images":16777217})");
  CHECK(end_line({9, 1.5, "abc", "dir"}) ==
        R"({"type":"end","steps":9,"seconds":1.5,"weights_hash":"abc"})");
}

TEST_CASE("a bubble line has seconds and shares of each worker, and shares sum to 1") {
  WorkerAccount account;
  account.worker = 1;
  account.stages = {1};
  at(account.measured, WorkerState::forward) = 3;
  at(account.measured, WorkerState::starved) = 1;
  at(account.predicted, WorkerState::forward) = 2;
  account.peak_bytes = 1000;
  const std::string line = bubble_line({4, 1, 0.5, {account}});
  CHECK(line.starts_with(R"({"type":"bubble","steps":4,"step_s":1,"predicted_step_s":0.5,)"
                         R"("workers":[{"worker":1,"replica":0,"stages":[1],)"
                         R"("seconds":{"forward":3,"backward_input":0,)"));
  CHECK(line.find(R"("shares":{"forward":0.75,)") != std::string::npos);
  CHECK(line.find(R"("starved":0.25,)") != std::string::npos);
  CHECK(line.ends_with(R"("peak_bytes":1000,"predicted_peak_bytes":0}]})"));
}

TEST_CASE("a spans line has the boxes of the last step from its begin on") {
  WorkerSpans worker;
  worker.measured = {
      {SpanTrack::compute, WorkerState::forward, {ScheduleOp::forward, 0, 2}, 7.5, 7.75}};
  const std::string line = spans_line({{{}, {9, 7, 8, {worker}}}, 0});
  CHECK(line ==
        R"({"type":"spans","step":9,"step_s":1,"clock_error_s":0,"all_workers":1,"workers":[)"
        R"({"worker":0,"replica":0,"measured":[["forward","F 0.2","compute",0.5,0.75]],)"
        R"("predicted":[]}]})");
}

TEST_CASE("the run line tells all settings, as they were resolved, and the versions") {
  RunInfo info;
  info.model = "resnet18";
  info.classes = 10;
  info.image_size = 32;
  info.parameters = 11;
  info.bn = "micro";
  info.class_names = {"a", "b"};
  std::string line = run_line(Options(), info, {{"convoy", "0.1"}, {"onednn", "3.2.0"}});
  CHECK(line.starts_with(R"({"type":"run","model":"resnet18","classes":10,"image-size":32,)"));
  for (const char* part :
       {R"("batch":64,)", R"("cut":"auto",)", R"("bn":"micro",)", R"("parameters":11,)",
        R"("class_names":["a","b"])", R"("versions":{"convoy":"0.1","onednn":"3.2.0"}})"}) {
    INFO(part);
    CHECK(line.find(part) != std::string::npos);
  }
}

TEST_CASE("a resumed run leaves the step and eval lines of one that never stopped") {
  TemporaryFolder folder;
  std::string whole = folder.read(run(folder.path("whole"), 0, 5).substr(folder.path("").size()));
  for (std::int64_t saved : {2, 3, 4}) {
    INFO("saved at step " << saved);
    run(folder.path("log"), 0, 4);
    run(folder.path("log"), saved, 5);
    CHECK(steps_and_evals(folder.read("log")) == steps_and_evals(whole));
  }
}

TEST_CASE("a run that starts afresh empties the file") {
  TemporaryFolder folder;
  run(folder.path("log"), 0, 4);
  std::string first = folder.read("log");
  run(folder.path("log"), 0, 4);
  CHECK(folder.read("log") == first);
}

TEST_CASE("a resumed run drops the evaluation that it makes again") {
  // Stopped between the eval line of epoch 2 and the checkpoint that would have told of it.
  RunInfo again;
  again.start_step = 6;
  again.start_epoch = 2;
  auto eval_of = [](std::int64_t epoch) { return eval_line({epoch, 0.5, 0.25, 0.75, 100}); };
  CHECK(keep_line(eval_of(1), again));
  CHECK(!keep_line(eval_of(2), again));
  CHECK(!keep_line(R"({"type":"eval"})", again));
  again.start_epoch = 3;  // the evaluation of epoch 2 stands in the checkpoint
  CHECK(keep_line(eval_of(2), again));
}

TEST_CASE("lines of others in the file are kept, odd step lines are not") {
  RunInfo at_three;
  at_three.start_step = 3;
  CHECK(keep_line("# my note", at_three));
  CHECK(keep_line(step_line(step(3)), at_three));
  CHECK(!keep_line(step_line(step(4)), at_three));
  CHECK(!keep_line(R"({"type":"step"})", at_three));
  CHECK(!keep_line(end_line({}), at_three));
}
