// The kernels of bench kernels against what is known of ResNet-50, and each of them run once.
#include "bench/kernels.h"

#include <cmath>
#include <map>

#include "kernels/base/error.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

std::vector<KernelCase> whole_cases() {
  return resnet50_cases(context("ref:0").kernels(), {.images = 1});
}

TEST_CASE("bench kernels: a step has ResNet-50's layers and work") {
  std::map<std::string, std::int64_t> counts, cases;
  double forward = 0;
  for (const KernelCase& of : whole_cases()) {
    counts[of.name] += of.count;
    cases[of.name] += 1;
    if (of.name == "conv2d_forward" || of.name == "linear_forward") {
      forward += of.flops * static_cast<double>(of.count);
    }
  }
  CHECK(forward == 2.0 * 4089184256.0);
  CHECK(counts["conv2d_forward"] == 53);
  CHECK(counts["conv2d_weight_gradient"] == 53);
  CHECK(counts["conv2d_input_gradient"] == 52);
  CHECK(cases["conv2d_forward"] == 23);
  for (const char* name : {"batch_norm_statistics", "batch_norm_apply",
                           "batch_norm_backward_reduce", "batch_norm_backward_apply"}) {
    CHECK(counts[name] == 53);
  }
}

TEST_CASE("bench kernels: optimizers see all parameters, bytes are those of the operands") {
  for (const KernelCase& of : whole_cases()) {
    if (of.name == "sgd_update") CHECK(of.shape == "25557032 parameters in 161 tensors");
    // The last convolution: x and y of 7x7x512, 3x3 weights, in f32.
    if (of.name == "conv2d_forward" && of.shape == "n1 c512 7x7 k512 3x3 stride 1") {
      CHECK(of.bytes() == 4.0 * (2 * 49 * 512 + 9 * 512 * 512));
    }
  }
}

TEST_CASE("bench kernels: each kernel runs and has a time") {
  KernelBenchOptions options;
  options.cases = {.images = 2, .image_size = 32, .channel_divisor = 8};
  options.repeats = 1;
  std::size_t told = 0;
  const KernelBenchResult result = bench_kernels(options, [&](const KernelBenchRow&) { ++told; });
  CHECK(told == result.rows.size());
  CHECK(!result.vendor.empty());
  CHECK(result.ceilings.bytes_s > 0);
  for (const KernelBenchRow& row : result.rows) {
    INFO(row.name << " " << row.shape);
    CHECK(row.seconds > 0);
    CHECK(row.limit_seconds > 0);
    CHECK(std::isfinite(row.share_of_limit));
    CHECK(!row.vendor_seconds);
  }
}

TEST_CASE("bench kernels: emulated devices have figures, others times") {
  KernelBenchOptions options;
  CHECK_THROWS_AS(bench_kernel_figures(options), Error);
  options.device = Device("emu:0");
  CHECK_THROWS_AS(bench_kernels(options, [](const KernelBenchRow&) {}), Error);
}

}  // namespace
}  // namespace convoy::testing
