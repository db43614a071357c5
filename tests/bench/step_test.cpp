#include "bench/step.h"

#include <algorithm>

#include "bench/op_times.h"
#include "kernels/base/stream_recorder.h"
#include "kernels/kernel_list.h"
#include "tests/support/catch.h"

namespace convoy {
namespace {

TEST_CASE("bench step: a steady step asks the system for no memory, and its time has classes") {
  StepBenchOptions options;
  options.settings.model = "resnet18";
  options.settings.image_size = 64;  // at 32 px the memory of the first step suffices
  options.settings.batch = 8;
  options.settings.devices = {"cpu:0"};
  options.steps = 3;
  const StepBenchResult result = bench_step(options, [](std::int64_t, std::int64_t) {});
  CHECK(result.allocations == 0);
  CHECK(result.seconds.size() == 3);
  CHECK(result.peak_flops > 0);
  std::vector<std::string> names;
  for (const auto& [name, seconds] : result.op_seconds) {
    names.push_back(name);
    if (name != "host") CHECK(seconds > 0);
  }
  for (const char* wanted : {"conv2d_forward", "conv2d_input_gradient", "conv2d_weight_gradient",
                             "batch_norm", "pooling", "linear", "loss", "optimizer", "host"}) {
    CAPTURE(wanted);
    CHECK(std::count(names.begin(), names.end(), wanted) == 1);
  }
  CHECK(std::count(names.begin(), names.end(), "other") == 0);
}

TEST_CASE("op times: every kernel that runs has a class") {
  // These are questions about layouts: no stream runs them.
  const std::vector<std::string> questions = {"layout_bytes", "conv2d_layouts",
                                              "batch_norm_mask_bytes"};
#define CONVOY_NAME(result, name, arguments) #name,
  for (const std::string name : {CONVOY_KERNEL_LIST(CONVOY_NAME) "copy_in", "copy_out"}) {
    if (std::count(questions.begin(), questions.end(), name)) continue;
    CAPTURE(name);
    CHECK(op_class(name) != "other");
  }
#undef CONVOY_NAME
  CHECK(op_class("warp_drive") == "other");
}

TEST_CASE("op times: classes add up, and long gaps within a step are stalls") {
  using std::chrono::microseconds;
  const std::chrono::steady_clock::time_point zero{};
  const auto span = [&](const char* kernel, int begin, int end) {
    return StreamSpan{"cpu:0", kernel, zero + microseconds(begin), zero + microseconds(end)};
  };
  OpTimes times;
  times.ran(span("batch_norm_apply", 0, 500));
  times.ran(span("void convoy::cpu::{anonymous}::batch_norm_merge(convoy::Stream&)", 599, 1000));
  times.ran(span("conv2d_forward", 1100, 1200));  // the one stall
  times.begin_step();
  times.ran(span("conv2d_forward", 9000, 9300));
  CHECK(times.stalls() == 1);
  const auto seconds = times.seconds();
  REQUIRE(seconds.size() == 2);
  CHECK(seconds[0].first == "conv2d_forward");
  CHECK(seconds[0].second == Approx(400e-6));
  CHECK(seconds[1].first == "batch_norm");
  CHECK(seconds[1].second == Approx(901e-6));
}

}  // namespace
}  // namespace convoy
