#include <cmath>
#include <cstdlib>

#include "cli/progress_observer.h"
#include "tests/cli/cli_test.h"

using namespace convoy;
using namespace convoy::cli;

namespace {

StepEvent step(std::int64_t number, double seconds, double loss = 1) {
  StepEvent event;
  event.step = number;
  event.epoch = 1;
  event.loss = loss;
  event.lr = 0.001;
  event.images = 10;
  event.seconds = seconds;
  event.wait_seconds = seconds / 4;
  return event;
}

RunInfo run_of(std::int64_t steps) {
  RunInfo info;
  info.model = "resnet50";
  info.parameters = 25557032;
  info.bn = "micro";
  info.devices = {"cpu:0"};
  info.device_texts = {"AVX2"};
  info.train_images = 60000;
  info.image_size = 32;
  info.classes = 10;
  info.class_names = {"a", "b"};
  info.steps_per_epoch = steps;
  info.total_steps = steps;
  return info;
}

/// What an observer of this style writes when `tell` tells it its events.
template <class Tell>
std::string shown(ProgressStyle style, Tell tell) {
  TemporaryFolder folder;
  std::FILE* file = std::fopen(folder.path("out").c_str(), "w");
  REQUIRE(file);
  {
    ProgressObserver observer(file, file, style, "fashion-mnist");
    tell(observer);
  }
  std::fclose(file);
  return folder.read("out");
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

}  // namespace

TEST_CASE("numbers for people") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(25557032) == "25,557,032");
  CHECK(grouped(-1000) == "-1,000");
  CHECK(duration(9.4) == "9 s");
  CHECK(duration(59.6) == "1 min 00 s");
  CHECK(duration(245) == "4 min 05 s");
  CHECK(duration(3 * 3600 + 7 * 60 + 10) == "3 h 07 min");
  CHECK(duration(2 * 86400 + 4 * 3600) == "2 d 04 h");
  CHECK(rate(1234.4) == "1234");
  CHECK(rate(35.24) == "35.2");
  CHECK(rate(0.4131) == "0.413");
  CHECK(percent(0.8125) == "81.25 %");
}

TEST_CASE("the first step counts in no rate") {
  Pace pace;
  pace.add(step(1, 100));
  CHECK(pace.rate() == 0);
  CHECK(pace.seconds_for(10) == 0);
  pace.add(step(2, 0.5));
  pace.add(step(3, 0.5));
  CHECK(pace.rate() == 20);
  CHECK(pace.wait_share() == 0.25);
  CHECK(pace.seconds_for(10) == 5);
  CHECK(pace.elapsed() == 101);
}

TEST_CASE("the recent rate follows a change faster than the mean") {
  Pace pace;
  for (int i = 1; i <= 50; ++i) pace.add(step(i, 1));
  for (int i = 51; i <= 70; ++i) pace.add(step(i, 0.5));
  CHECK(pace.recent_rate() > 17);
  CHECK(pace.rate() < 14);
}

TEST_CASE("a standing is told in one line") {
  Standing standing{120, 375, 1, 3, 1005, 0.81234, 0.001};
  Pace pace;
  CHECK(standing_line(standing, pace) == "epoch 1/3  120/375  32 %  loss 0.8123  lr 0.001");
  pace.add(step(1, 9));
  pace.add(step(2, 0.25));
  CHECK(standing_line(standing, pace) ==
        "epoch 1/3  120/375  32 %  loss 0.8123  40.0 images/s (40.0)  lr 0.001  data wait 25 %  "
        "4 min 11 s left");
}

TEST_CASE("the bar takes what is left of the line") {
  Standing standing;
  standing.step = 1;
  standing.steps_per_epoch = 2;
  CHECK(bar_line(standing, "text", 18) == "[#####.....] text");
  CHECK(bar_line(standing, "text", 16) == "[####....] text");
  CHECK(bar_line(standing, "text", 15) == "text");
  CHECK(bar_line(standing, "text", 4) == "tex");
  CHECK(bar_line(standing, "text", 0).empty());
  CHECK(bar_line(standing, "text", 500).size() == 30 + 3 + 4);
}

TEST_CASE("plain progress: the first line, then lines at intervals and at the end") {
  std::string text = shown(ProgressStyle::plain, [](Observer& observer) {
    observer.on_run(run_of(20));
    for (int i = 1; i <= 20; ++i) observer.on_step(step(i, 1, i));
    observer.on_eval_progress(5, 10);
    observer.on_eval({1, 0.5, 0.8125, 0.99, 10000});
    observer.on_checkpoint("run/step-20");
    observer.on_warning("careful");
    observer.on_note("so it is");
    observer.on_end({20, 20, "abc", "run/step-20"});
  });
  CHECK(
      text.starts_with("resnet50, 25,557,032 parameters, batch norm micro, cpu:0 (AVX2), "
                       "fashion-mnist: 60,000 images of 32 px, 10 classes\n"));
  CHECK(count(text, "epoch 1/1  ") == 3);  // steps 1, 11 and 20
  CHECK(count(text,
              "epoch 1/1  11/20  55 %  loss 6.0000  10.0 images/s (10.0)  lr 0.001  "
              "data wait 25 %  9 s left\n") == 1);  // the mean of 1 to 11
  CHECK(count(text, "epoch 1: test loss 0.5000, top-1 81.25 %, top-5 99.00 % of 10,000 images\n") ==
        1);
  CHECK(count(text, "saved run/step-20\n") == 1);
  CHECK(count(text, "convoy: warning: careful\n") == 1);
  CHECK(count(text, "convoy: so it is\n") == 1);
  CHECK(count(text, "trained to step 20 in 20 s, 10.0 images/s\n") == 1);
  CHECK(count(text, "best top-1 81.25 % in epoch 1\n") == 1);
  CHECK(text.ends_with("checkpoint run/step-20\nweights hash abc\n"));
  CHECK(text.find('\r') == std::string::npos);
  CHECK(text.find('\033') == std::string::npos);
}

TEST_CASE("bar progress: one line is painted over, whole lines take its place") {
  std::string text = shown(ProgressStyle::bar, [](Observer& observer) {
    observer.on_run(run_of(3));
    for (int i = 1; i <= 3; ++i) observer.on_step(step(i, 1));
    observer.on_eval_progress(5, 10);
    observer.on_eval({1, 0.5, 0.8125, 0.99, 10000});
  });
  CHECK(count(text, "\repoch 1/1") + count(text, "\r[") == 3);
  CHECK(count(text, "\revaluating  5/10\033[K\r\033[Kepoch 1: test loss") == 1);
}

TEST_CASE("a resumed run says where it goes on") {
  std::string text = shown(ProgressStyle::plain, [](Observer& observer) {
    RunInfo info = run_of(8);
    info.start_step = 5;
    observer.on_run(info);
    observer.on_step(step(6, 1));
  });
  CHECK(count(text, "going on after step 5 of 8\n") == 1);
  CHECK(count(text, "epoch 1/1  6/8  75 %") == 1);
}

TEST_CASE("rows of numbers have no classes and no accuracy") {
  std::string text = shown(ProgressStyle::plain, [](Observer& observer) {
    RunInfo info = run_of(3);
    info.class_names.clear();
    observer.on_run(info);
    observer.on_eval({1, 0.5, std::nan(""), std::nan(""), 6});
  });
  CHECK(count(text, "fashion-mnist: 60,000 rows\n") == 1);
  CHECK(count(text, "epoch 1: test loss 0.5000 of 6 images\n") == 1);
}

TEST_CASE("an error's line does not follow a painted one") {
  TemporaryFolder folder;
  std::FILE* file = std::fopen(folder.path("out").c_str(), "w");
  {
    ProgressObserver observer(file, file, ProgressStyle::bar, "");
    observer.on_eval_progress(1, 2);
  }
  std::fclose(file);
  CHECK(folder.read("out").ends_with("evaluating  1/2\033[K\r\033[K"));
}

TEST_CASE("a file gets plain progress") {
  TemporaryFolder folder;
  std::FILE* file = std::fopen(folder.path("out").c_str(), "w");
  CHECK(progress_style(file) == ProgressStyle::plain);
  std::fclose(file);
}

TEST_CASE("progress that cannot be written is a resource error") {
  for (ProgressStyle style : {ProgressStyle::plain, ProgressStyle::bar}) {
    std::FILE* full = std::fopen("/dev/full", "w");
    REQUIRE(full);
    {
      ProgressObserver observer(full, stderr, style, "");
      try {
        observer.on_run(run_of(3));
        FAIL("nothing was thrown");
      } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::resource);
        CHECK(error.text() == "cannot write to stdout: No space left on device");
      }
    }
    std::fclose(full);
  }
}
