// Traces of streams: what lands in the file, under which names, and what does not.
#include "engine/io/stream_trace.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/ops/ops.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace convoy::testing {
namespace {

using Json = nlohmann::json;

Json events_of(const std::string& path) {
  return Json::parse(std::ifstream(path)).at("traceEvents");
}

Json spans_of(const std::string& path) {
  Json spans = Json::array();
  for (const Json& event : events_of(path)) {
    if (event.at("ph") == "X") spans.push_back(event);
  }
  return spans;
}

std::vector<std::string> names_in(const Json& spans, const char* key) {
  std::vector<std::string> names;
  for (const Json& span : spans) names.push_back(span.at(key));
  return names;
}

}  // namespace

TEST_CASE("stream trace: kernels in order, by device, phase and name") {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/trace.json";
  using Names = std::vector<std::string>;
  {
    Tensor::ones({4});  // before
    StreamTrace trace(path, {"cpu:0", "ref:0"});
    const Tensor x = Tensor::ones({4, 4});
    trace.phase("second \"one\"");
    square(x);
    const Tensor moved = x.to("ref:0");
    linear(moved, Tensor::ones({2, 4}, {DType::f32, "ref:0"}));
    trace.close();
    square(x);  // after
    CHECK(std::filesystem::exists(path));
  }
  const Json events = events_of(path), spans = spans_of(path);
  CHECK(events.at(0).at("args").at("name") == "cpu:0");
  CHECK(events.at(1).at("args").at("name") == "ref:0");
  Json rows[2] = {Json::array(), Json::array()};
  for (const Json& span : spans) rows[span.at("tid").get<int>()].push_back(span);
  CHECK(names_in(rows[0], "name") == Names{"fill", "unary_forward"});
  CHECK(names_in(rows[0], "cat") == Names{"", "second \"one\""});
  CHECK(names_in(rows[1], "name") == Names{"copy", "fill", "linear_forward"});
  double last = 0;
  for (const Json& span : rows[1]) {
    CHECK(span.at("ts").get<double>() >= last);  // a stream runs one after the other
    last = span.at("ts").get<double>() + span.at("dur").get<double>();
  }
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("stream trace: names of functions") {
  CHECK(kernel_name("conv2d_forward") == "conv2d_forward");
  CHECK(kernel_name("void convoy::cpu::fill(convoy::Stream&, long int, double)") == "fill");
  CHECK(kernel_name("void convoy::reference::{anonymous}::sum(Stream&)::<lambda(auto:7)> [with "
                    "auto:7 = float]") == "sum");
  CHECK(kernel_name("void convoy::(anonymous namespace)::cast(Stream &)") == "cast");
  CHECK(kernel_name("T *f(int)") == "f");
}

TEST_CASE("stream trace: what it refuses") {
  expect_error(ErrorKind::usage, {"no devices"}, [] { StreamTrace("t.json", {}); });
  TemporaryFolder folder;
  StreamTrace trace(folder.path() + "/absent/trace.json", {"cpu:0"});
  expect_error(ErrorKind::resource, {"absent"}, [&] { trace.close(); });
  expect_error(ErrorKind::usage, {"is closed"}, [&] { trace.phase("late"); });
}

}  // namespace convoy::testing
