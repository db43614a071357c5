#include "cli/trace_file.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/whole_file.h"
#include "tests/cli/cli_test.h"
#include "tests/cli/report/fake_spans.h"

using namespace convoy;
using namespace convoy::cli;

namespace {

using Json = nlohmann::json;

std::vector<Json> events(const Json& trace, const char* phase) {
  std::vector<Json> found;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == phase) found.push_back(event);
  }
  return found;
}

/// Boxes of a track that cross each other: neither apart nor one within the other.
int crossings(const Json& trace) {
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> tracks;
  int crossing = 0;
  for (const Json& box : events(trace, "X")) {
    const double begin = box["ts"];
    const double end = begin + box["dur"].get<double>();
    auto& track = tracks[{box["pid"], box["tid"]}];
    for (const auto& [from, to] : track) {
      const bool apart = end <= from + 1e-6 || begin >= to - 1e-6;
      const bool within =
          (from <= begin + 1e-6 && end <= to + 1e-6) || (begin <= from + 1e-6 && to <= end + 1e-6);
      crossing += !apart && !within;
    }
    track.emplace_back(begin, end);
  }
  return crossing;
}

}  // namespace

TEST_CASE("a trace has a process a worker, four tracks each, and a box a span") {
  const Json trace = Json::parse(trace_json({{fake_step(5, 80), fake_step(6, 89)}, 1e-6}));
  CHECK(events(trace, "X").size() == 20);
  std::map<std::string, int> names;
  for (const Json& event : events(trace, "M")) {
    if (event["name"] == "thread_name" || event["name"] == "process_name") {
      ++names[event["args"]["name"]];
    }
  }
  CHECK(names == std::map<std::string, int>{{"worker 0 (replica 0, stage 0)", 1},
                                            {"worker 1 (replica 0, stage 1)", 1},
                                            {"compute", 2},
                                            {"send", 2},
                                            {"receive", 2},
                                            {"collectives", 2}});
  const Json first = events(trace, "X").front();
  CHECK(first["name"] == "F 0.0");
  CHECK(first["ts"] == 0);  // the first step's begin
  CHECK(first["dur"] == 125000);
  CHECK(first["args"] == Json({{"step", 5}, {"stage", 0}, {"micro_batch", 0}}));
  CHECK(trace["otherData"]["first_step"] == 5);
  CHECK(trace["otherData"]["last_step"] == 6);
  CHECK(crossings(trace) == 0);
}

TEST_CASE("messages that overlap go to further tracks, those within others stay") {
  StepSpans step = fake_step(1);
  const auto message = [](int k, double begin, double end) {
    return fake_box(SpanTrack::receive, WorkerState::transfer, ScheduleOp::receive_activation, 1, k,
                    begin, end);
  };
  step.workers[1].measured = {message(0, 0, 4), message(1, 1, 2), message(2, 3, 6)};
  const Json trace = Json::parse(trace_json({{step}, 0}));
  CHECK(crossings(trace) == 0);
  std::map<int, int> boxes;
  for (const Json& box : events(trace, "X")) {
    if (box["pid"] == 2) ++boxes[box["tid"]];
  }
  CHECK(boxes == std::map<int, int>{{201, 2}, {202, 1}});
}

TEST_CASE("an arrow leads from where a message was ready to its receive") {
  StepSpans step = fake_step(1);
  step.workers[0].measured.push_back(
      fake_box(SpanTrack::send, WorkerState::slot_full, ScheduleOp::send_activation, 0, 0, 1, 2));
  step.workers[1].measured[0].end = 2.0 / 8;
  step.workers[1].measured.push_back(fake_box(SpanTrack::receive, WorkerState::transfer,
                                              ScheduleOp::receive_activation, 1, 0, 2, 3));
  const Json trace = Json::parse(trace_json({{step}, 0}));
  const std::vector<Json> from = events(trace, "s");
  const std::vector<Json> to = events(trace, "f");
  REQUIRE(from.size() == 2);
  REQUIRE(to.size() == 2);
  CHECK(from[0]["id"] == to[0]["id"]);
  CHECK(to[0]["bp"] == "e");
  CHECK(from[0]["pid"] == 1);
  CHECK(from[0]["ts"] == 250000);  // the end of the wait for room
  CHECK(to[0]["pid"] == 2);
  CHECK(to[0]["ts"] == 375000);  // of its two boxes the later one
  CHECK(from[1]["pid"] == 2);
  CHECK(from[1]["ts"] == 625000);  // I 1.0 made the gradient; nothing waited to send it
  CHECK(to[1]["pid"] == 1);
  CHECK(to[1]["ts"] == 625000);
}

TEST_CASE("a trace is bounded in whole steps and says what it leaves out") {
  StepSpans big = fake_step(1);
  big.workers[0].measured.assign(150'000, fake_forward(0, 0, 0));
  SpansEvent event{{big, big, big}, 0};
  event.steps[1].step = 2;
  const Json trace = Json::parse(trace_json(event));
  CHECK(trace["otherData"]["steps"] == 1);
  CHECK(trace["otherData"]["steps_left_out"] == 2);
  CHECK(trace["otherData"]["last_step"] == 1);
}

TEST_CASE("a trace without steps is a trace") {
  CHECK(Json::parse(trace_json({}))["traceEvents"].empty());
}

TEST_CASE("the trace's file is replaced as a whole") {
  TemporaryFolder folder;
  const std::string path = folder.write("trace.json", "old");
  TraceObserver observer(path);
  observer.on_spans({{fake_step(1)}, 0});
  CHECK(Json::parse(folder.read("trace.json"))["traceEvents"].size() > 20);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path("")), {}) == 1);
}

TEST_CASE("files that cannot be written are found before the run") {
  TemporaryFolder folder;
  CHECK(usage_error([&] { prepare_file("--trace", folder.path("")); }).find("this is a folder") !=
        std::string::npos);
  prepare_file("--report", folder.path("new/deep/r.html"));
  CHECK(std::filesystem::is_directory(folder.path("new/deep")));
  CHECK_THROWS(prepare_file("--report", folder.write("file", "") + "/r.html"));
  CHECK_THROWS(write_whole_file("/dev/full", "text"));
  write_whole_file("/dev/null", "text");
  CHECK(std::filesystem::is_character_file("/dev/null"));
}
