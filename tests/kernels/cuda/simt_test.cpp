// The fp32 kernels by tiles: ResNet's shapes cut down, both tile sizes, tails, split sums, parity
// classes, and what they leave to the naive kernels.
#include "kernels/cuda/simt.h"

#include <cmath>

#include "kernels/cuda/layout.h"
#include "kernels/emulator/kernel_figures.h"
#include "tests/kernels/conv2d_cases.h"
#include "tests/kernels/cuda/gpu_name.h"
#include "tests/kernels/cuda/resnet_shapes.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

using CONVOY_GPU::SimtTileSize;

const Variant kOracle{"ref:0", DType::f64};
const Variant kDevice{kGpuName, DType::f32, true};

// What kernels find in their scratch must not matter.
void poison_scratch(const Launch& l) {
  constexpr std::int64_t kCount = 1 << 18;
  l.kernels.fill(l.stream, kCount, NAN,
                 {l.stream.scratch(kCount * sizeof(float)), DType::f32, kPlain});
}

// The three passes, and the same by tiles of a given size.
std::vector<std::pair<OpCase, OpCase>> passes(const Conv2dShape& shape, SimtTileSize tile) {
  std::vector<std::pair<OpCase, OpCase>> result;
  auto add = [&](const OpCase& op_case, const std::function<bool(const Launch&)>& run) {
    OpCase by_tiles = op_case;
    by_tiles.run([run](const Launch& l) {
      poison_scratch(l);
      CHECK(run(l));
    });
    result.emplace_back(op_case, by_tiles);
  };
  add(conv2d_forward_case(shape, true), [=](const Launch& l) {
    return CONVOY_GPU::simt_conv2d_forward(l.stream, shape, l["x"], l["w"], l["b"], l["y"], tile);
  });
  add(conv2d_input_gradient_case(shape), [=](const Launch& l) {
    return CONVOY_GPU::simt_conv2d_input_gradient(l.stream, shape, l["dy"], l["w"], l["dx"], tile);
  });
  add(conv2d_weight_gradient_case(shape, false), [=](const Launch& l) {
    return CONVOY_GPU::simt_conv2d_weight_gradient(l.stream, shape, l["x"], l["dy"], l["dw"], tile);
  });
  return result;
}

double relative_l2(const std::vector<double>& actual, const std::vector<double>& expected) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return norm == 0 && error == 0 ? 0 : std::sqrt(error / norm);
}

void check_integers(const Conv2dShape& shape, SimtTileSize tile) {
  for (const auto& [op_case, by_tiles] : passes(shape, tile)) {
    compare(with_integers(op_case), kDevice, run(with_integers(by_tiles), kDevice),
            run(with_integers(op_case), kOracle));
  }
}

void check_random(const Conv2dShape& shape, SimtTileSize tile) {
  for (const auto& [op_case, by_tiles] : passes(shape, tile)) {
    const Results actual = run(by_tiles, kDevice), expected = run(op_case, kOracle);
    for (const auto& [name, values] : expected) {
      INFO(op_case.name << ", result " << name);
      CHECK(relative_l2(actual.at(name), values) < 1e-5);
    }
  }
}

// What the kernels by tiles ask of memory in one run of the case.
void check_figures(const emulator::KernelFigures& kernel) {
  if (kernel.kernel.find("simt_kernel") == std::string::npos) return;
  CHECK(!kernel.sites.empty());
  for (const emulator::SiteFigures& site : kernel.sites) {
    INFO(kernel.kernel << " at " << site.place);
    CHECK(double(site.actual) <= double(site.ideal) * (site.is_shared ? 1 : 1.1));
  }
}

// ResNet's shapes with an eighth of the channels, on images of 64 pixels.
std::vector<Conv2dShape> small_resnet_shapes() {
  std::vector<Conv2dShape> shapes = resnet_shapes(2, 64);
  for (Conv2dShape& shape : shapes) {
    if (shape.c > 3) shape.c /= 8;
    shape.k /= 8;
  }
  return shapes;
}

// Strides whose parity classes are 4, 9 and 36, unequal or empty, some without taps; channels that
// fill neither a step of depth nor a tile.
std::vector<Conv2dShape> uneven_shapes() {
  return {
      {1, 8, 7, 5, 8, 3, 3, 2, 2, 1, 1},    {2, 12, 9, 8, 20, 1, 1, 2, 2},
      {1, 8, 11, 13, 12, 3, 3, 3, 3, 1, 1}, {2, 4, 13, 17, 8, 5, 5, 6, 6, 2, 2},
      {1, 4, 1, 2, 4, 1, 1, 3, 3},          {3, 20, 5, 6, 36, 2, 3, 1, 2, 0, 1},
      {1, 3, 15, 9, 12, 7, 7, 2, 2, 3, 3},  {1, 1, 6, 6, 4, 3, 3, 1, 1, 1, 1},
      {1, 4, 35, 3, 4, 31, 1, 1, 1, 15, 0}, {5, 8, 1, 1, 8, 3, 3, 1, 1, 1, 1},
  };
}

}  // namespace

TEST_CASE("simt conv2d: ResNet's shapes, small tiles") {
  for (const Conv2dShape& shape : small_resnet_shapes()) {
    check_integers(shape, SimtTileSize::small);
    check_random(shape, SimtTileSize::small);
  }
}

TEST_CASE("simt conv2d: ResNet's shapes, large tiles") {
  for (const Conv2dShape& shape : small_resnet_shapes()) check_integers(shape, SimtTileSize::large);
}

TEST_CASE("simt conv2d: uneven shapes, both tiles") {
  for (const Conv2dShape& shape : uneven_shapes()) {
    check_integers(shape, SimtTileSize::small);
    check_integers(shape, SimtTileSize::large);
  }
}

TEST_CASE("simt conv2d: several tiles each way with tails, split sums, long sums") {
  const Conv2dShape shape{1, 68, 9, 15, 140, 3, 3, 1, 1, 1, 1};
  check_integers(shape, SimtTileSize::small);
  check_random(shape, SimtTileSize::large);
  check_integers({2, 8, 47, 49, 16, 3, 3, 1, 1, 1, 1}, SimtTileSize::chosen);
  check_random({1, 512, 3, 3, 64, 3, 3, 1, 1, 1, 1}, SimtTileSize::chosen);
}

// In programs that are built with the checks.
TEST_CASE("simt conv2d: no bank conflicts, sectors are used in full") {
  if (!emulator::has_kernel_figures()) {
    expect_error(ErrorKind::usage, {"figures of kernels", "without the emulator's checks"},
                 [] { emulator::start_kernel_figures(); });
    return;
  }
  const std::vector<Conv2dShape> shapes = {{1, 64, 7, 7, 64, 3, 3, 1, 1, 1, 1},
                                           {1, 64, 7, 7, 64, 3, 3, 2, 2, 1, 1},
                                           {1, 64, 7, 7, 128, 1, 1}};
  for (const Conv2dShape& shape : shapes) {
    for (SimtTileSize tile : {SimtTileSize::small, SimtTileSize::large}) {
      for (const auto& [op_case, by_tiles] : passes(shape, tile)) {
        emulator::start_kernel_figures();
        run(by_tiles, kDevice);
        for (const auto& kernel : emulator::take_kernel_figures()) check_figures(kernel);
      }
    }
  }
}

TEST_CASE("simt conv2d: what has no vectors of floats is left alone") {
  const Conv2dShape usual{1, 8, 4, 4, 8, 3, 3};
  auto applies = [](const Conv2dShape& shape, const Variant& variant, std::size_t offset = 0) {
    bool result = false;
    OpCase op_case = conv2d_forward_case(shape, false);
    op_case.run([&](const Launch& l) {
      Buffer x = l["x"];
      x.data = static_cast<char*>(x.data) + offset;
      result = CONVOY_GPU::simt_conv2d_forward(l.stream, shape, x, l["w"], {}, l["y"]);
      if (!result) l.kernels.conv2d_forward(l.stream, shape, l["x"], l["w"], {}, l["y"]);
    });
    run(op_case, variant);
    return result;
  };
  CHECK(applies(usual, kDevice));
  CHECK(!applies(usual, kDevice, 4));
  CHECK(!applies(usual, {kGpuName, DType::f32, false}));
  CHECK(!applies(usual, {kGpuName, DType::f64, true}));
  CHECK(!applies({1, 6, 4, 4, 8, 3, 3}, kDevice));
  CHECK(!applies({1, 8, 4, 4, 8, 3, 3, 1, 1, 2, 2, 2, 2}, kDevice));
  CHECK(!applies({1, 8, 4, 4, 8, 3, 3, 1, 1, 0, 0, 1, 1, 2}, kDevice));
}

TEST_CASE("conv2d_layouts: rows of channels in whole vectors") {
  const KernelTable& kernels = context(kGpuName).kernels();
  auto layouts = [&](std::int64_t c, std::int64_t k, DType dtype) {
    const Conv2dLayouts l = kernels.conv2d_layouts({1, c, 8, 8, k, 3, 3}, dtype);
    return std::vector<LayoutId>{l.x, l.weight, l.y};
  };
  using CONVOY_GPU::kChannelsLast;
  using CONVOY_GPU::kChannelsLast4;
  const std::vector<LayoutId> plain(3, kPlain), rows(3, kChannelsLast),
      stem{kChannelsLast4, kChannelsLast4, kChannelsLast};
  CHECK(layouts(64, 64, DType::f32) == rows);
  CHECK(layouts(4, 12, DType::f32) == rows);
  CHECK(layouts(3, 64, DType::f32) == stem);
  CHECK(layouts(3, 64, DType::bf16) == stem);
  CHECK(layouts(12, 64, DType::bf16) == plain);
  CHECK(layouts(16, 64, DType::bf16) == rows);
  CHECK(layouts(64, 10, DType::f32) == plain);
  CHECK(layouts(64, 64, DType::f64) == plain);
}

}  // namespace convoy::testing
