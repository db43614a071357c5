#include <sstream>

#include "kernels/base/host_context.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/library.h"
#include "tests/kernels/cpu/cpu_run.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

/// Sets the number of threads of cpu:0 and puts the old one back.
class Threads {
 public:
  explicit Threads(int threads) : outer_(context("cpu:0").threads()) {
    context("cpu:0").set_threads(threads);
  }
  ~Threads() { context("cpu:0").set_threads(outer_); }

 private:
  int outer_;
};

struct Sums {
  std::vector<double> statistics;
  std::vector<float> others;
  friend bool operator==(const Sums&, const Sums&) = default;
};

// One of each kind of sum, long enough that threads share it.
Sums sums_with(int threads) {
  const Threads scope(threads);
  CpuRun run;
  const KernelTable& k = run.kernels();
  const BatchNormShape s{4, 40, 900};
  const std::int64_t count = s.x().count();
  const LayoutId layout = k.conv2d_layouts({4, 40, 30, 30, 40, 3, 3, 1, 1, 1, 1}, DType::f32).x;
  const Buffer x = run.put(s.x(), fractions(count, 1), layout);
  const Buffer plain = run.put({count}, fractions(count, 2)), dx = run.make({count});
  const Buffer mean = run.doubles(std::vector<double>(40)),
               m2 = run.doubles(std::vector<double>(40));
  const Buffer squares = run.doubles({0}), loss = run.make({1}), total = run.make({1});
  k.batch_norm_statistics(run.stream(), s, x, mean, m2);
  k.sum_of_squares(run.stream(), {plain}, {count}, squares);
  k.mse(run.stream(), count, 1e-3, plain, run.put({count}, fractions(count, 3)), loss, dx);
  k.reduce_sum(run.stream(), {1, count, 1}, 1, plain, total);
  Sums result;
  for (const auto& [buffer, size] :
       {std::pair(mean, 40), std::pair(m2, 40), std::pair(squares, 1)}) {
    for (double value : run.memory<double>(buffer, static_cast<std::size_t>(size))) {
      result.statistics.push_back(value);
    }
  }
  result.others = run.memory<float>(dx, static_cast<std::size_t>(count));
  result.others.push_back(run.memory<float>(loss, 1)[0]);
  result.others.push_back(run.memory<float>(total, 1)[0]);
  return result;
}

}  // namespace

TEST_CASE("cpu context: describes vectors, library and threads") {
  const Threads scope(1);
  const DeviceContext& device = context("cpu:0");
  CHECK(device.threads() == 1);
  std::ostringstream expected;
  expected << cpu::isa().title << ", " << cpu::library_name() << ", 1 thread of " << allowed_cores()
           << (allowed_cores() == 1 ? " core" : " cores");
  CHECK(device.describe() == expected.str());
}

TEST_CASE("cpu context: devices beyond the cores share them") {
  const std::string name = "cpu:" + std::to_string(allowed_cores() + 3);
  DeviceContext& device = context(name);
  CHECK(to_string(device.device()) == name);
  device.default_stream().synchronize();
}

TEST_CASE("cpu context: own sums have the same bits with any number of threads") {
  const Sums expected = sums_with(1);
  CHECK(sums_with(2) == expected);
  CHECK(sums_with(3) == expected);
}

TEST_CASE("cpu context: its peak is a rate of at least a tenth of an operation a nanosecond") {
  CHECK(context("cpu:0").measure_peak_flops() > 1e8);
}

TEST_CASE("cpu context: a bad label is a data error of the stream, which then works on") {
  CpuRun run;
  const std::vector<std::int64_t> values = {1, 12};
  const Buffer labels = run.make({2}, kPlain, DType::i64), loss = run.put({1}, {7});
  run.device().copy_in(run.stream(), labels.data, values.data(), 2 * sizeof(std::int64_t));
  const Buffer logits = run.put({2, 10}, fractions(20, 1));
  run.kernels().softmax_cross_entropy(run.stream(), {2, 10}, logits, labels, loss, {});
  expect_error(ErrorKind::data, {"softmax_cross_entropy: label 12 of row 1, expected 0..9"},
               [&] { run.stream().synchronize(); });
  CHECK(run.memory<float>(loss, 1) == std::vector<float>{7});
}

TEST_CASE("cpu context: pooling refuses windows that it cannot index or that see no image") {
  CpuRun run;
  const Buffer x = run.make({1, 1, 40, 40}), index = run.make({1, 1, 40, 40}, kPlain, DType::u8);
  const Pool2dShape wide{1, 1, 40, 40, 17, 17, 1, 1};
  expect_error(ErrorKind::usage, {"max_pool2d_forward", "17x17", "256"},
               [&] { run.kernels().max_pool2d_forward(run.stream(), wide, x, x, index); });
  const Pool2dShape padded{1, 1, 4, 4, 2, 2, 2, 2, 2, 2};
  expect_error(ErrorKind::usage, {"avg_pool2d_forward", "padding 2x2", "2x2"},
               [&] { run.kernels().avg_pool2d_forward(run.stream(), padded, x, x); });
}

}  // namespace convoy::testing
