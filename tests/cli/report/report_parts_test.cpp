// Pieces that reports are made of, and what is read from metric lines.
#include <cmath>

#include "cli/report/axis.h"
#include "cli/report/breakdown.h"
#include "cli/report/line_chart.h"
#include "cli/report/run_record.h"
#include "cli/report/summary_of_run.h"
#include "cli/report/svg.h"
#include "tests/cli/cli_test.h"

using namespace convoy;
using namespace convoy::cli;

namespace {

RunRecord record_of(const std::vector<std::string>& lines) {
  RunRecord record;
  for (const std::string& line : lines) REQUIRE(add_line(record, line));
  return record;
}

std::string bubble(int steps, double forward, double starved) {
  WorkerAccount account;
  account.stages = {0};
  at(account.measured, WorkerState::forward) = forward;
  at(account.measured, WorkerState::starved) = starved;
  return R"({"type":"bubble","steps":)" + std::to_string(steps) + R"(,"step_s":)" +
         std::to_string((forward + starved) / steps) +
         R"(,"workers":[{"worker":0,"stages":[0],"seconds":{"forward":)" + std::to_string(forward) +
         R"(,"starved":)" + std::to_string(starved) + R"(},"peak_bytes":)" + std::to_string(steps) +
         "}]}";
}

}  // namespace

TEST_CASE("markup cannot be made by a name") {
  CHECK(escape(R"x(<img onerror="a('b')">&)x") ==
        "&lt;img onerror=&quot;a(&#39;b&#39;)&quot;&gt;&amp;");
  CHECK(escape("\x01"
               "a\xff") == "\\x01a\\xFF");
  CHECK(escape("é") == "é");
}

TEST_CASE("coordinates have two digits and never leave the drawing's language") {
  CHECK(coordinate(1) == "1");
  CHECK(coordinate(1.005e2) == "100.5");
  CHECK(coordinate(-0.001) == "0");
  CHECK(coordinate(1200) == "1200");
  CHECK(coordinate(std::nan("")) == "0");
}

TEST_CASE("ticks are round and lie within the range") {
  CHECK(round_ticks(0, 10, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(round_ticks(0.93, 3.1, 5) == std::vector<double>{1, 1.5, 2, 2.5, 3});
  CHECK(round_ticks(3, 3, 5) == std::vector<double>{3});
  CHECK(std::signbit(round_ticks(-0.2, 1, 5)[1]) == false);
}

TEST_CASE("smoothing keeps constants and lengths") {
  std::vector<Point> points;
  for (int i = 0; i < 500; ++i) points.push_back({static_cast<double>(i), 2});
  points[250].y = 13;
  const std::vector<Point> smooth = smoothed(points);
  REQUIRE(smooth.size() == 500);
  CHECK(smooth[0].y == 2);
  CHECK(smooth[499].y == 2);
  CHECK(smooth[250].y == 3);  // 11 more over 11 neighbours
}

TEST_CASE("accounts of one layout add up, another layout begins anew") {
  RunRecord record = record_of({bubble(2, 3, 1), bubble(6, 6, 6)});
  CHECK(record.workers->steps == 8);
  CHECK(record.workers->step_s == 2);
  CHECK(at(record.workers->workers[0].measured, WorkerState::forward) == 9);
  CHECK(record.workers->workers[0].peak_bytes == 6);
  CHECK(bubble_share(*record.workers, false) == 7.0 / 16);
  REQUIRE(
      add_line(record, R"({"type":"bubble","steps":1,"workers":[{"worker":0,"stages":[0,1]}]})"));
  CHECK(record.workers->steps == 1);
}

TEST_CASE("of equal stages the bubble is (p - 1) / (m + p - 1)") {
  CHECK(bubble_of_equal_stages(4, 13) == 3.0 / 16);
  CHECK(bubble_of_equal_stages(1, 8) == 0);
}

TEST_CASE("a summary leaves the first step out of the rate and finds the best accuracy") {
  const RunRecord record =
      record_of({R"({"type":"step","step":1,"loss":9,"images":4,"images_per_s":1})",
                 R"({"type":"step","step":2,"loss":2,"images":4,"images_per_s":10})",
                 R"({"type":"eval","epoch":1,"top1":0.5})",
                 R"({"type":"step","step":3,"loss":1,"images":4,"images_per_s":30})",
                 R"({"type":"step","step":4,"loss":0.5,"images":4,"images_per_s":20})",
                 R"({"type":"eval","epoch":2,"top1":0.25})"});
  const RunSummary summary = summary_of(record);
  CHECK(summary.rate->median == 20);
  CHECK(summary.best->top1 == 0.5);
  CHECK(summary.best->epoch == 1);
  CHECK(summary.loss == 0.5);
  CHECK(!summary.seconds);
  CHECK(!summary.bubble);
  CHECK(record.evals[1].step == 4);
}

TEST_CASE("the speed-up is of the best pipeline over one device") {
  const RunRecord record = record_of(
      {R"({"bench":"split","model":"resnet18","cut":"auto"})",
       R"({"bench":"split","mode":"single","split":8,"micro_batches":1,"images_per_s":4})",
       R"({"bench":"split","mode":"data-parallel","split":4,"micro_batches":1,"speed_up":3})",
       (R"({"bench":"split","mode":"pipeline","split":2,"micro_batches":4,"images_per_s":9,)"
        R"("speed_up":2.25,"speed_up_same_split":1.8})"),
       (R"({"bench":"split","mode":"pipeline","split":4,"micro_batches":2,"images_per_s":6,)"
        R"("speed_up":1.5})"),
       R"({"bench":"split","claim":"a","verdict":"holds","ratio":2,"row":"b","against":"c"})"});
  CHECK(record.splits[0].whole());
  CHECK(!record.splits[2].whole());
  CHECK(record.split_facts.size() == 2);
  CHECK(record.split_verdicts ==
        std::vector<std::string>{"a: holds. b is 2.00 times as fast as c"});
  const auto gain = summary_of(record).speed_up;
  REQUIRE(gain);
  CHECK(gain->split == 2);
  CHECK(gain->against_whole == 2.25);
  CHECK(gain->against_same_split == 1.8);
}
