// The bits that the cpu backend keeps of a ReLU behind batch norm.
#include <cmath>
#include <limits>

#include "kernels/cpu/layout.h"
#include "tests/kernels/cpu/cpu_run.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

constexpr double kEpsilon = 1e-5;

// Forward and backward of 2 x 20 channels of 3 x 5: no run is whole rows of 16 but in blocks of 16.
struct Run {
  const Shape shape{2, 20, 3, 5};
  LayoutId layout;
  bool residual;
  bool by_bits;
  CpuRun cpu = {};

  std::vector<float> x() const {
    std::vector<float> values = fractions(shape.count(), 1);
    values[7] = std::numeric_limits<float>::quiet_NaN();
    values[16] = 0;  // in a channel whose mean and beta are 0: y is 0, which lets nothing pass
    return values;
  }

  std::vector<std::vector<float>> operator()() {
    const BatchNormShape norm{shape[0], shape[1], shape[2] * shape[3]};
    std::vector<double> mean(20, 0.0), m2(20, 30.0);
    mean[3] = 0.25;
    const BatchNormStatistics statistics{cpu.doubles(mean), cpu.doubles(m2), 30};
    const Buffer in = cpu.put(shape, x(), layout);
    const Buffer add = residual ? cpu.put(shape, fractions(shape.count(), 2), layout) : Buffer{};
    const Buffer dy = cpu.put(shape, fractions(shape.count(), 3), layout);
    const Buffer gamma = cpu.put({20}, fractions(20, 4));
    const Buffer beta = cpu.put({20}, std::vector<float>(20, 0.0f));
    const Buffer y = cpu.make(shape, layout), dx = cpu.make(shape, layout);
    const Buffer dz = cpu.make(shape, layout);
    const Buffer sum = cpu.doubles(std::vector<double>(20)), sum_x = cpu.doubles(mean);
    const KernelTable& k = cpu.kernels();
    const auto bytes = static_cast<std::int64_t>(k.batch_norm_mask_bytes(norm, layout, DType::f32));
    const Buffer mask = by_bits ? cpu.make({bytes}, kPlain, DType::u8) : Buffer{};
    const ConstBuffer read_y = by_bits ? ConstBuffer{} : y;
    k.batch_norm_apply(cpu.stream(), norm, in, statistics, kEpsilon, gamma, beta, add, true, y,
                       mask);
    k.batch_norm_backward_reduce(cpu.stream(), norm, in, read_y, mask, dy, statistics, kEpsilon,
                                 true, sum, sum_x);
    k.batch_norm_backward_apply(cpu.stream(), norm, in, read_y, mask, dy, statistics, kEpsilon,
                                true, gamma, sum, sum_x, dx, dz);
    const auto sums = cpu.memory<float>(sum, 40), sums_x = cpu.memory<float>(sum_x, 40);
    return {cpu.values(shape, dz), sums, cpu.values(shape, dx), sums_x, cpu.values(shape, y)};
  }
};

// NaN is not equal to itself.
std::vector<std::vector<float>> comparable(std::vector<std::vector<float>> values) {
  for (auto& list : values) {
    for (float& value : list) value = std::isnan(value) ? 1e30f : value;
  }
  return values;
}

}  // namespace

TEST_CASE("cpu batch norm: a ReLU's bits tell what its output tells") {
  for (LayoutId layout : {kPlain, cpu::kBlock8, cpu::kBlock16}) {
    for (bool residual : {false, true}) {
      CAPTURE(layout, residual);
      const auto by_bits =
          comparable(Run{.layout = layout, .residual = residual, .by_bits = true}());
      CHECK(by_bits == comparable(Run{.layout = layout, .residual = residual, .by_bits = false}()));
      const std::vector<float>& dz = by_bits.front();
      CHECK(dz[7] == fractions(600, 3)[7]);  // NaN passes
      if (!residual) CHECK(dz[16] == 0);
    }
  }
}

TEST_CASE("cpu batch norm: bits are of the layout that they were made in") {
  CpuRun cpu;
  const BatchNormShape norm{1, 16, 16};
  const Buffer x = cpu.make({1, 16, 4, 4}, cpu::kBlock16), dy = cpu.make({1, 16, 4, 4}, kPlain);
  const Buffer mask = cpu.make({32}, kPlain, DType::u8), gamma = cpu.make({16});
  const Buffer means = cpu.doubles(std::vector<double>(16, 1.0));
  expect_error(
      ErrorKind::internal, {"batch_norm_backward_apply: mask of layout 2", "layout 0"}, [&] {
        cpu.kernels().batch_norm_backward_apply(cpu.stream(), norm, x, {}, mask, dy,
                                                {means, means, 16}, kEpsilon, true, gamma, means,
                                                means, cpu.make({1, 16, 4, 4}, cpu::kBlock16), {});
      });
}

}  // namespace convoy::testing
