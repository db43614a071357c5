#include "kernels/cpu/layout.h"

#include "tests/kernels/cpu/cpu_run.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

const std::vector<LayoutId> kActivationLayouts = {kPlain, cpu::kBlock8, cpu::kBlock16};

// Where element (n, c, s) of an activation lies, by the definition of the layouts.
std::size_t place(LayoutId layout, const Shape& shape, std::int64_t n, std::int64_t c,
                  std::int64_t s) {
  const std::int64_t block = cpu::block_of(layout), spatial = shape[2] * shape[3];
  const std::int64_t blocks = (shape[1] + block - 1) / block;
  return static_cast<std::size_t>(((n * blocks + c / block) * spatial + s) * block + c % block);
}

// (shape[0], shape[1], spatial) numbered from 1, so that no value is that of padding.
std::vector<float> numbered(const Shape& shape) {
  std::vector<float> result;
  for (std::int64_t i = 1; i <= shape.count(); ++i) result.push_back(static_cast<float>(i));
  return result;
}

std::vector<float> expected_memory(LayoutId layout, const Shape& shape) {
  std::vector<float> memory(static_cast<std::size_t>(cpu::stored_floats(layout, shape)), 0.0f);
  float value = 0;
  for (std::int64_t n = 0; n < shape[0]; ++n)
    for (std::int64_t c = 0; c < shape[1]; ++c)
      for (std::int64_t s = 0; s < shape[2] * shape[3]; ++s)
        memory[place(layout, shape, n, c, s)] = ++value;
  return memory;
}

}  // namespace

TEST_CASE("cpu layouts: blocks lie as their names say, padding is zero") {
  const Shape shape{2, 20, 3, 5};
  CpuRun run;
  for (LayoutId from : kActivationLayouts) {
    for (LayoutId to : kActivationLayouts) {
      CAPTURE(from, to);
      const Buffer x = run.put(shape, numbered(shape), from);
      const Buffer y = run.make(shape, to);
      run.kernels().reorder(run.stream(), shape, x, y);
      const std::vector<float> expected = expected_memory(to, shape);
      CHECK(run.memory<float>(y, expected.size()) == expected);
    }
  }
}

TEST_CASE("cpu layouts: memory holds whole blocks") {
  const KernelTable& kernels = context("cpu:0").kernels();
  CHECK(kernels.layout_bytes(kPlain, {2, 20, 3, 5}, DType::f32) == 2 * 20 * 15 * 4);
  CHECK(kernels.layout_bytes(cpu::kBlock8, {2, 20, 3, 5}, DType::f32) == 2 * 24 * 15 * 4);
  CHECK(kernels.layout_bytes(cpu::kBlock16, {2, 20, 3, 5}, DType::f32) == 2 * 32 * 15 * 4);
  CHECK(kernels.layout_bytes(cpu::kBlock16, {2, 20, 3, 5}, DType::u8) == 2 * 32 * 15);
}

TEST_CASE("cpu layouts: numbers that nobody gave out are internal errors") {
  const KernelTable& kernels = context("cpu:0").kernels();
  expect_error(ErrorKind::internal, {"layout", "7"}, [&] {
    kernels.layout_bytes(7, {1, 1, 1, 1}, DType::f32);
  });
  expect_error(ErrorKind::internal, {"layout", "1000000"}, [&] {
    kernels.layout_bytes(1000000, {1, 1, 1, 1}, DType::f32);
  });
}

TEST_CASE("cpu layouts: equal convolutions have equal layouts, weights keep their values") {
  CpuRun run;
  const Conv2dShape shape{2, 32, 6, 6, 48, 3, 3, 1, 1, 1, 1};
  const Conv2dLayouts layouts = run.kernels().conv2d_layouts(shape, DType::f32);
  const Conv2dLayouts again = run.kernels().conv2d_layouts(shape, DType::f32);
  CHECK(layouts.x == again.x);
  CHECK(layouts.weight == again.weight);
  CHECK(layouts.y == again.y);
  const std::vector<float> values = numbered(shape.weight());
  const Buffer w = run.put(shape.weight(), values, layouts.weight);
  CHECK(run.values(shape.weight(), w) == values);
}

TEST_CASE("cpu layouts: a weight layout does not fit weights of another shape") {
  CpuRun run;
  const Conv2dShape shape{2, 32, 6, 6, 48, 3, 3, 1, 1, 1, 1};
  const LayoutId layout = run.kernels().conv2d_layouts(shape, DType::f32).weight;
  if (layout == kPlain) return;  // a build without a convolution library has no such layouts
  expect_error(ErrorKind::internal, {"weight layout", "(48, 32, 1, 1)"}, [&] {
    run.kernels().layout_bytes(layout, {48, 32, 1, 1}, DType::f32);
  });
}

TEST_CASE("cpu layouts: types without kernels are kept plain") {
  const Conv2dShape shape{2, 32, 6, 6, 48, 3, 3, 1, 1, 1, 1};
  const Conv2dLayouts layouts = context("cpu:0").kernels().conv2d_layouts(shape, DType::f64);
  CHECK(layouts.x == kPlain);
  CHECK(layouts.weight == kPlain);
  CHECK(layouts.y == kPlain);
}

}  // namespace convoy::testing
