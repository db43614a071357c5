// Convolution on tensor cores against the reference backend: integers, whose sums are exact in any
// order, bit by bit; other values within the bounds of bf16 and TF32.
#include <cmath>

#include "kernels/base/bf16.h"
#include "kernels/cuda/mma.h"
#include "kernels/emulator/kernel_figures.h"
#include "tests/kernels/conv2d_cases.h"
#include "tests/kernels/cuda/conv_run.h"
#include "tests/kernels/cuda/gpu_name.h"
#include "tests/kernels/cuda/resnet_shapes.h"
#include "tests/support/catch.h"

#ifndef CUDART_VERSION  // CUDA's own headers know no emulator
#include "kernels/emulator/machine.h"
#endif

namespace convoy::testing {
namespace {

using CONVOY_GPU::ConvPass;
using CONVOY_GPU::kChannelsLast;
using CONVOY_GPU::MmaPlan;
using CONVOY_GPU::MmaTiles;

// The passes of one convolution on the device. Plans are made for the tiles asked for, so that f32
// runs as TF32 whatever the stream allows.
struct MmaRun {
  GpuRun gpu;
  Conv2dShape s;
  DType dtype;
  std::optional<MmaTiles> tiles;
  LayoutId layout = channels_layout(s);
  Buffer x, w, b, dy, y, dx, dw;

  MmaRun(const ConvOperands& o, DType type, std::optional<MmaTiles> asked)
      : s(o.shape), dtype(type), tiles(asked) {
    x = gpu.put(s.x(), o.x, dtype, layout);
    w = gpu.put(s.weight(), o.w, dtype, layout);
    b = gpu.put({s.k, 1, 1, 1}, o.b, DType::f32, kPlain);
    dy = gpu.put(s.y(), o.dy, dtype, kChannelsLast);
    y = gpu.make(s.y(), dtype, kChannelsLast);
    dx = gpu.make(s.x(), dtype, layout);
    dw = gpu.make(s.weight(), DType::f32, layout);
  }

  std::optional<MmaPlan> plan(ConvPass pass) const {
    return CONVOY_GPU::mma_plan(pass, s, {layout, layout, kChannelsLast}, dtype, tiles);
  }

  /// Whether the input gradient was computed too.
  bool run() {
    const auto forward = plan(ConvPass::forward), weight = plan(ConvPass::weight_gradient);
    const auto input = plan(ConvPass::input_gradient);
    REQUIRE((forward && weight));
    mma_forward(gpu.stream(), *forward, x, w, b, y);
    mma_weight_gradient(gpu.stream(), *weight, x, dy, dw);
    if (input) mma_input_gradient(gpu.stream(), *input, dy, w, dx);
    return input.has_value();
  }

  std::vector<std::vector<std::byte>> bits() { return {gpu.bits(y), gpu.bits(dx), gpu.bits(dw)}; }
};

double rounded(double value, DType dtype) {
  const auto narrow = static_cast<float>(value);
  return dtype == DType::bf16 ? static_cast<float>(Bf16(narrow)) : narrow;
}

// How many of the values are not those expected, rounded once.
std::int64_t wrong(const std::vector<double>& actual, const std::vector<double>& expected,
                   DType dtype) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (actual[i] != rounded(expected[i], dtype)) ++count;
  }
  return count;
}

double norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

double relative_error(const std::vector<double>& actual, const std::vector<double>& expected) {
  std::vector<double> error(expected.size());
  for (std::size_t i = 0; i < error.size(); ++i) error[i] = actual[i] - expected[i];
  return norm(error) / norm(expected);
}

// The largest error as a multiple of 2^-8 * |expected| + 2^-8 * the deviation of all values, which
// is sqrt(terms) times that of one product.
double worst_error(const std::vector<double>& actual, const std::vector<double>& expected) {
  const double deviation = norm(expected) / std::sqrt(double(expected.size()));
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double bound = 0x1p-8 * (std::abs(expected[i]) + deviation);
    worst = std::max(worst, std::abs(actual[i] - expected[i]) / bound);
  }
  return worst;
}

void check_integers(const ConvOperands& operands, const ConvResults& expected, DType dtype,
                    std::optional<MmaTiles> tiles) {
  MmaRun run(operands, dtype, tiles);
  const bool input = run.run();
  CHECK(wrong(run.gpu.values(run.s.y(), run.y), expected.y, dtype) == 0);
  CHECK(wrong(run.gpu.values(run.s.weight(), run.dw), expected.dw, DType::f32) == 0);
  if (input) CHECK(wrong(run.gpu.values(run.s.x(), run.dx), expected.dx, dtype) == 0);
  CHECK(run.gpu.inputs_are_unchanged());
}

void check_values(const ConvOperands& operands, const ConvResults& expected, DType dtype,
                  std::optional<MmaTiles> tiles) {
  const double bound = dtype == DType::bf16 ? 5e-3 : 1e-3;
  MmaRun run(operands, dtype, tiles);
  const bool input = run.run();
  const auto y = run.gpu.values(run.s.y(), run.y);
  CHECK(relative_error(y, expected.y) < bound);
  CHECK(worst_error(y, expected.y) < 1);
  CHECK(relative_error(run.gpu.values(run.s.weight(), run.dw), expected.dw) < 1e-3);
  if (input) {
    const auto dx = run.gpu.values(run.s.x(), run.dx);
    CHECK(relative_error(dx, expected.dx) < bound);
    CHECK(worst_error(dx, expected.dx) < 1);
  }
}

constexpr MmaTiles kAllTiles[] = {MmaTiles::k128x128, MmaTiles::k128x64, MmaTiles::k64x64};

// n, c, h, w, k, r, s, stride, padding: odd extents, rows and columns that end inside a tile, taps
// outside on all sides, channels of one copy, several images in a tile, classes without taps or
// places, images by pairs of pixels.
const Conv2dShape kShapes[] = {
    {2, 40, 7, 9, 136, 3, 3, 1, 1, 1, 1}, {2, 40, 7, 9, 24, 3, 3, 2, 2, 1, 1},
    {3, 8, 5, 5, 72, 1, 1, 2, 2},         {1, 136, 12, 11, 40, 1, 1},
    {1, 3, 16, 15, 64, 7, 7, 2, 2, 3, 3}, {1, 16, 9, 6, 8, 2, 3, 2, 1, 0, 1},
    {1, 8, 3, 3, 8, 5, 5, 1, 1, 2, 2},    {3, 8, 1, 5, 16, 3, 3, 2, 2, 1, 1},
    {1, 8, 1, 1, 8, 1, 1, 2, 2},          {2, 3, 9, 14, 24, 7, 7, 2, 2, 3, 3},
    {1, 4, 6, 8, 16, 3, 4, 1, 2, 1, 2},
};

// The shapes of ResNet-50 at an eighth of their channels and a quarter of their extents.
std::vector<Conv2dShape> small_resnet_shapes() {
  std::vector<Conv2dShape> shapes = resnet_shapes(2, 56);
  for (Conv2dShape& shape : shapes) {
    if (shape.c % 8 == 0) shape.c /= 8;
    shape.k /= 8;
  }
  return shapes;
}

}  // namespace

TEST_CASE("tensor cores convolve integers exactly with all tiles", "[mma]") {
  for (const Conv2dShape& shape : kShapes) {
    const ConvOperands operands = integer_operands(shape);
    const ConvResults expected = reference_results(operands);
    for (const MmaTiles tiles : kAllTiles) {
      for (const DType dtype : {DType::bf16, DType::f32}) {
        INFO(to_string(shape) << " tiles " << int(tiles) << " " << name(dtype));
        check_integers(operands, expected, dtype, tiles);
      }
    }
  }
}

TEST_CASE("tensor cores convolve the shapes of ResNet-50", "[mma]") {
  for (const Conv2dShape& shape : small_resnet_shapes()) {
    const ConvOperands operands = integer_operands(shape);
    const ConvResults expected = reference_results(operands);
    INFO(to_string(shape));
    check_integers(operands, expected, DType::bf16, {});
    check_integers(operands, expected, DType::f32, {});
  }
}

TEST_CASE("tensor cores convolve within the bounds of bf16 and TF32", "[mma]") {
  for (const Conv2dShape& shape :
       {Conv2dShape{2, 64, 7, 9, 72, 3, 3, 1, 1, 1, 1},
        Conv2dShape{2, 24, 9, 7, 64, 3, 3, 2, 2, 1, 1}, Conv2dShape{2, 256, 7, 7, 64, 1, 1}}) {
    const ConvOperands operands = bf16_operands(shape);
    const ConvResults expected = reference_results(operands);
    INFO(to_string(shape));
    check_values(operands, expected, DType::bf16, {});
    check_values(operands, expected, DType::f32, {});
  }
}

#ifndef CUDART_VERSION
TEST_CASE("the order of threads and the lateness of copies change no bit on tensor cores",
          "[mma]") {
  using namespace emulator::machine;
  const ConvOperands operands = bf16_operands({2, 40, 7, 9, 24, 3, 3, 2, 2, 1, 1});
  for (const DType dtype : {DType::bf16, DType::f32}) {
    std::vector<std::vector<std::byte>> first;
    for (const Lateness lateness : {Lateness::eager, Lateness::late}) {
      for (const Order order : {Order::forward, Order::reverse, Order::random}) {
        MachineOptions options = machine_options();
        options.order = order;
        options.lateness = lateness;
        const MachineOptionsScope scope(options);
        MmaRun run(operands, dtype, {});
        run.run();
        if (first.empty()) first = run.bits();
        CHECK(run.bits() == first);
      }
    }
  }
}
#endif

TEST_CASE("a split weight gradient adds its parts in their order", "[mma]") {
  // 17 x 17 x 16 places are more than one part may sum.
  const ConvOperands operands = integer_operands({16, 8, 17, 17, 8, 1, 1});
  MmaRun run(operands, DType::bf16, {});
  REQUIRE(run.plan(ConvPass::weight_gradient)->split.count > 1);
  run.run();
  CHECK(wrong(run.gpu.values(run.s.weight(), run.dw), reference_results(operands, false).dw,
              DType::f32) == 0);
}

TEST_CASE("a linear layer on tensor cores is a convolution of single places", "[mma]") {
  const LinearShape shape{70, 136, 72};
  const ConvOperands o = integer_operands({shape.rows, shape.in, 1, 1, shape.out, 1, 1});
  const ConvResults expected = reference_results(o);
  // Tensors of single places lie the same way in all layouts.
  GpuRun gpu;
  const auto put = [&](const Shape& s, const std::vector<double>& values, DType dtype) {
    return gpu.put(s, values, dtype, kPlain);
  };
  const Shape x_shape = o.shape.x(), w_shape = o.shape.weight(), y_shape = o.shape.y();
  const Buffer x = put(x_shape, o.x, DType::bf16), w = put(w_shape, o.w, DType::bf16);
  const Buffer dy = put(y_shape, o.dy, DType::bf16), b = put({shape.out, 1, 1, 1}, o.b, DType::f32);
  const Buffer y = gpu.make(y_shape, DType::bf16, kPlain);
  const Buffer dx = gpu.make(x_shape, DType::bf16, kPlain);
  const Buffer dw = gpu.make(w_shape, DType::f32, kPlain);
  CHECK(CONVOY_GPU::mma_linear_forward(gpu.stream(), shape, x, w, b, y));
  CHECK(CONVOY_GPU::mma_linear_input_gradient(gpu.stream(), shape, dy, w, dx));
  CHECK(CONVOY_GPU::mma_linear_weight_gradient(gpu.stream(), shape, x, dy, dw));
  CHECK(wrong(gpu.values(y_shape, y), expected.y, DType::bf16) == 0);
  CHECK(wrong(gpu.values(x_shape, dx), expected.dx, DType::bf16) == 0);
  CHECK(wrong(gpu.values(w_shape, dw), expected.dw, DType::f32) == 0);
}

TEST_CASE("f32 goes to tensor cores where TF32 is allowed alone, and only aligned", "[mma]") {
  const Conv2dShape shape{1, 8, 4, 4, 8, 1, 1};
  const ConvOperands operands = integer_operands(shape);
  MmaRun run(operands, DType::f32, {});
  const auto forward = [&](Buffer y) {
    return CONVOY_GPU::mma_conv2d_forward(run.gpu.stream(), shape, run.x, run.w, run.b, y);
  };
  CHECK_FALSE(forward(run.y));
  context(kGpuName).set_tf32(true);
  CHECK(forward(run.y));
  CHECK_FALSE(forward({run.y.as<float>() + 1, DType::f32, run.y.layout}));
  context(kGpuName).set_tf32(false);
  CHECK(wrong(run.gpu.values(shape.y(), run.y), reference_results(operands).y, DType::f32) == 0);
}

// In programs that are built with the checks.
TEST_CASE("tensor-core kernels have no bank conflicts and use sectors in full", "[mma]") {
  if (!emulator::has_kernel_figures()) return;
  for (const Conv2dShape& shape :
       {Conv2dShape{1, 64, 12, 12, 128, 3, 3, 1, 1, 1, 1},
        Conv2dShape{1, 64, 12, 12, 128, 3, 3, 2, 2, 1, 1}, Conv2dShape{1, 64, 12, 12, 128, 1, 1}}) {
    const ConvOperands operands = integer_operands(shape);
    for (const MmaTiles tiles : kAllTiles) {
      emulator::start_kernel_figures();
      for (const DType dtype : {DType::bf16, DType::f32}) MmaRun(operands, dtype, tiles).run();
      int kernels = 0;
      for (const emulator::KernelFigures& kernel : emulator::take_kernel_figures()) {
        if (kernel.kernel.find("mma_kernel") == std::string::npos) continue;
        ++kernels;
        CHECK_FALSE(kernel.sites.empty());
        for (const emulator::SiteFigures& site : kernel.sites) {
          INFO(to_string(shape) << " " << kernel.kernel << " at " << site.place);
          CHECK(double(site.actual) <= double(site.ideal) * (site.is_shared ? 1 : 1.1));
        }
      }
      CHECK(kernels == 6);  // three passes in two types
    }
  }
}

// Rows of the gathered operand overlap and end in the middle of sectors, so that all loads count
// together.
TEST_CASE("images go to tensor cores by pairs of pixels, which use sectors in full", "[mma]") {
  if (!emulator::has_kernel_figures()) return;
  const Conv2dShape shape{1, 3, 32, 32, 64, 7, 7, 2, 2, 3, 3};
  for (const DType dtype : {DType::bf16, DType::f32}) {
    MmaRun run(integer_operands(shape), dtype, {});
    emulator::start_kernel_figures();
    mma_forward(run.gpu.stream(), *run.plan(ConvPass::forward), run.x, run.w, run.b, run.y);
    mma_weight_gradient(run.gpu.stream(), *run.plan(ConvPass::weight_gradient), run.x, run.dy,
                        run.dw);
    run.gpu.stream().synchronize();
    for (const emulator::KernelFigures& kernel : emulator::take_kernel_figures()) {
      INFO(kernel.kernel);
      std::uint64_t actual = 0, ideal = 0;
      for (const emulator::SiteFigures& site : kernel.sites) {
        if (site.is_shared) CHECK(site.actual == site.ideal);
        actual += site.is_shared ? 0 : site.actual;
        ideal += site.is_shared ? 0 : site.ideal;
      }
      CHECK(double(actual) <= double(ideal) * 1.1);
    }
  }
}

}  // namespace convoy::testing
