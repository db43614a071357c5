// Which convolutions go to tensor cores, and how: pure functions of the shape.
#include "kernels/cuda/mma.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

using CONVOY_GPU::ConvPass;
using CONVOY_GPU::kChannelsLast;
using CONVOY_GPU::kChannelsLast4;
using CONVOY_GPU::MmaPlan;
using CONVOY_GPU::MmaTiles;

constexpr ConvPass kPasses[] = {ConvPass::forward, ConvPass::input_gradient,
                                ConvPass::weight_gradient};

// Which passes take the shape: "f", "i", "w".
std::string taken(const Conv2dShape& shape, DType dtype, LayoutId x = kChannelsLast) {
  std::string result;
  for (const ConvPass pass : kPasses) {
    const auto plan = CONVOY_GPU::mma_plan(pass, shape, {x, x, kChannelsLast}, dtype);
    if (plan) result += "fiw"[static_cast<int>(pass)];
  }
  return result;
}

// groups is the last of the numbers.
Conv2dShape square(std::int64_t c, std::int64_t k, std::int64_t filter, std::int64_t stride) {
  return {2, c, 28, 28, k, filter, filter, stride, stride, filter / 2, filter / 2};
}

}  // namespace

TEST_CASE("tensor cores take rows of whole 16-byte words, and images", "[mma]") {
  CHECK(taken(square(8, 8, 3, 1), DType::bf16) == "fiw");
  CHECK(taken(square(8, 8, 3, 2), DType::bf16) == "fiw");
  CHECK(taken(square(4, 4, 3, 1), DType::f32) == "fiw");
  CHECK(taken(square(3, 64, 7, 2), DType::bf16, kChannelsLast4) == "fw");
  CHECK(taken(square(3, 64, 7, 2), DType::f32, kChannelsLast4) == "fiw");
}

TEST_CASE("tensor cores leave to others what does not fit them", "[mma]") {
  CHECK(taken(square(8, 12, 3, 1), DType::bf16).empty());
  CHECK(taken(square(6, 8, 3, 1), DType::bf16).empty());
  CHECK(taken(square(8, 8, 3, 1), DType::f64).empty());
  CHECK(taken(square(8, 8, 3, 1), DType::bf16, kPlain).empty());
  CHECK(taken(square(8, 8, 3, 3), DType::bf16) == "fw");
  CHECK(taken(square(8, 8, 13, 1), DType::bf16).empty());
  Conv2dShape shape = square(16, 16, 3, 1);
  shape.dilation_h = 2;
  CHECK(taken(shape, DType::bf16).empty());
  shape = square(16, 16, 3, 1);
  shape.groups = 2;
  CHECK(taken(shape, DType::bf16).empty());
}

TEST_CASE("linear layers are convolutions of single places in any layout", "[mma]") {
  CHECK(taken({32, 2048, 1, 1, 1000, 1, 1}, DType::bf16, kPlain) == "fiw");
  CHECK(taken({32, 2048, 1, 1, 10, 1, 1}, DType::bf16, kPlain).empty());
}

TEST_CASE("images of four bf16 channels are copied 8 bytes at a time, or by pairs of pixels",
          "[mma]") {
  const auto plan = [](std::int64_t c, std::int64_t stride, DType dtype) {
    return *mma_plan(ConvPass::forward, square(c, 64, 7, stride),
                     {kChannelsLast4, kChannelsLast4, kChannelsLast}, dtype);
  };
  CHECK(plan(3, 1, DType::bf16).piece == 8);
  CHECK(plan(3, 1, DType::f32).piece == 16);
  CHECK(plan(8, 1, DType::bf16).piece == 16);
  CHECK_FALSE(plan(3, 1, DType::f32).rows);
  CHECK_FALSE(plan(8, 2, DType::bf16).rows);
  for (const DType dtype : {DType::bf16, DType::f32}) {
    const MmaPlan stem = plan(3, 2, dtype);
    CHECK(stem.piece == 16);
    REQUIRE(stem.rows);
    CHECK(stem.problem.c == 8);
    CHECK(stem.problem.s == 4);
  }
}

TEST_CASE("tiles are large where they fill a GPU", "[mma]") {
  CHECK(CONVOY_GPU::mma_tiles(256 * 56 * 56, 256) == MmaTiles::k128x128);
  CHECK(CONVOY_GPU::mma_tiles(256 * 56 * 56, 64) == MmaTiles::k128x64);
  CHECK(CONVOY_GPU::mma_tiles(256 * 56 * 56, 8) == MmaTiles::k128x64);
  CHECK(CONVOY_GPU::mma_tiles(32 * 7 * 7, 512) == MmaTiles::k64x64);
  CHECK(CONVOY_GPU::mma_tiles(1, 1) == MmaTiles::k64x64);
  // 132 tiles of 128 x 128, and one less.
  CHECK(CONVOY_GPU::mma_tiles(132 * 128, 128) == MmaTiles::k128x128);
  CHECK(CONVOY_GPU::mma_tiles(131 * 128, 128) == MmaTiles::k64x64);
}

TEST_CASE("weight gradients are split by the shape, in whole k-steps", "[mma]") {
  const auto plan = [](const Conv2dShape& shape) {
    return *mma_plan(ConvPass::weight_gradient, shape,
                     {kChannelsLast, kChannelsLast, kChannelsLast}, DType::bf16);
  };
  Conv2dShape shape{256, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1};
  CHECK(plan(shape).tiles == MmaTiles::k64x64);
  CHECK(plan(shape).split.length % 32 == 0);
  CHECK(plan(shape).split.length <= CONVOY_GPU::kLongestSum);
  CHECK(std::int64_t{plan(shape).split.count} * plan(shape).split.length >= 256 * 56 * 56);
  shape.c = shape.k = 128;
  CHECK(plan(shape).tiles == MmaTiles::k128x128);
}

}  // namespace convoy::testing
