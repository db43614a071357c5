#include "cli/report/gantt.h"

#include <filesystem>
#include <sstream>

#include "tests/cli/cli_test.h"
#include "tests/cli/report/fake_spans.h"

using namespace convoy;
using namespace convoy::cli;

namespace {

const std::filesystem::path kGolden = CONVOY_GOLDEN;

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// The first line in which two texts differ.
std::string difference(const std::string& is, const std::string& expected) {
  std::istringstream left(is);
  std::istringstream right(expected);
  std::string a;
  std::string b;
  for (int line = 1;; ++line) {
    const bool more_a = static_cast<bool>(std::getline(left, a));
    const bool more_b = static_cast<bool>(std::getline(right, b));
    if (!more_a && !more_b) return "none";
    if (a != b || more_a != more_b) {
      return "line " + std::to_string(line) + "\n  is       " + a + "\n  expected " + b;
    }
  }
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

SpanRecord record(StepSpans step) {
  const auto workers = static_cast<std::int64_t>(step.workers.size());
  return {std::move(step), workers};
}

}  // namespace

TEST_CASE("the timeline of a made-up step is the golden drawing") {
  const std::string drawing = draw_gantt(record(fake_step(3)), "timeline", 1000).svg.file();
  const std::string golden = read(kGolden / "timeline.svg");
  const auto fresh = std::filesystem::temp_directory_path() / "convoy-timeline.svg";
  if (drawing != golden) std::ofstream(fresh, std::ios::binary) << drawing;
  INFO(difference(drawing, golden)
       << "\nif it is meant so: cp " << fresh << " " << kGolden / "timeline.svg");
  const bool same = drawing == golden;
  CHECK(same);
}

TEST_CASE("boxes stand at their times, the forecast's below the measured ones") {
  const std::string drawing = draw_gantt(record(fake_step(3)), "t", 1000).svg.markup();
  // 9 eighths of a second on 898 units from 190 on: F0 of worker 1 begins after one of them.
  CHECK(count(drawing, R"(<rect x="289.78" y="88" width="99.78" height="23" class="box forward")") +
            count(drawing, R"(<rect x="289.78")") >
        1);
  CHECK(count(drawing, R"(class="box forward")") == 4);
  CHECK(count(drawing, R"(class="box backward_input")") == 4);
  CHECK(count(drawing, R"(class="plan forward")") == 4);
  CHECK(count(drawing, R"(class="wait starved")") == 2);
  CHECK(drawing.find("F 1.0: 125.000 to 250.000 ms (125.000 ms)") != std::string::npos);
}

TEST_CASE("boxes too thin to be seen are put together, and workers without room are left out") {
  StepSpans step = fake_step(1);
  for (int k = 0; k < 1000; ++k) {
    step.workers[0].measured.push_back(fake_box(SpanTrack::compute, WorkerState::backward_weight,
                                                ScheduleOp::backward_weight, 0, k, 9 + k * 1e-6,
                                                9 + (k + 1) * 1e-6));
  }
  const Gantt gantt = draw_gantt(record(step), "t", 10);
  CHECK(gantt.workers == 1);  // one is always drawn
  CHECK(count(gantt.svg.markup(), R"(class="box backward_weight)") == 1);
  CHECK(gantt.svg.markup().find("1000 boxes from W 0.0") != std::string::npos);
  CHECK(draw_gantt(record(fake_step(1)), "t", 1000).workers == 2);
}

TEST_CASE("micro-batches are counted by forwards") {
  CHECK(micro_batches_of(record(fake_step(1))) == 2);
}
