#include <algorithm>

#include "kernels/cuda/mma.h"

namespace convoy::CONVOY_GPU {
namespace {

// Taps of a filter row or column: loaders keep them as bits and count a few past the last.
constexpr int kMostTaps = 12;
// Strides of the input gradient, each with a class of its own in a launch.
constexpr int kMostStride = 2;

bool is_image(const ConvProblem& c, DType dtype) {
  return dtype == DType::bf16 && c.c % 8 != 0;
}

bool takes(ConvPass pass, const ConvProblem& c, DType dtype) {
  if (c.r > kMostTaps || c.s > kMostTaps) return false;
  if (dtype == DType::bf16 && c.k % 8 != 0) return false;
  if (pass != ConvPass::input_gradient) return true;
  return !is_image(c, dtype) && c.stride_h <= kMostStride && c.stride_w <= kMostStride;
}

// Filters are few where images are: of 64 rows, half of a large tile would be idle.
MmaTiles weight_gradient_tiles(const ConvProblem& c) {
  const std::int64_t n = std::int64_t{c.taps()} * c.c;
  return c.k <= 64 || n <= 64 ? MmaTiles::k64x64 : MmaTiles::k128x128;
}

// What forward and weight gradient compute, of pairs of pixels where that can be.
MmaPlan plan_of_x(const ConvProblem& c, DType dtype) {
  if (const auto pairs = paired(c)) return {pairs->problem, {}, 16, {1, 0}, pairs->rows};
  return {c, {}, is_image(c, dtype) ? 8 : 16, {1, 0}, {}};
}

MmaPlan weight_gradient_plan(MmaPlan plan, std::optional<MmaTiles> asked) {
  const ConvProblem& c = plan.problem;
  plan.tiles = asked.value_or(weight_gradient_tiles(c));
  const int side = plan.tiles == MmaTiles::k64x64 ? 64 : 128;
  const std::int64_t places = std::int64_t{c.n} * c.p * c.q;
  plan.split = split_depth(c.k, std::int64_t{c.taps()} * c.c, places, side, side);
  return plan;
}

}  // namespace

MmaTiles mma_tiles(std::int64_t m, std::int64_t n) {
  constexpr std::int64_t kEnough = 132;  // multiprocessors of a large GPU
  const auto tiles = [&](std::int64_t rows, std::int64_t columns) {
    return (m + rows - 1) / rows * ((n + columns - 1) / columns);
  };
  const bool narrow = (n - 1) % 128 < 64;  // the last tile of 128 columns would be half idle
  if (tiles(128, narrow ? 64 : 128) < kEnough) return MmaTiles::k64x64;
  return narrow && n < 512 ? MmaTiles::k128x64 : MmaTiles::k128x128;
}

std::optional<MmaPlan> mma_plan(ConvPass pass, const Conv2dShape& shape,
                                const Conv2dLayouts& layouts, DType dtype,
                                std::optional<MmaTiles> tiles) {
  if (dtype != DType::bf16 && dtype != DType::f32) return {};
  const std::optional<ConvProblem> problem = conv_problem(shape, layouts, 4);
  if (!problem || !takes(pass, *problem, dtype)) return {};
  const ConvProblem& c = *problem;
  if (pass == ConvPass::weight_gradient) return weight_gradient_plan(plan_of_x(c, dtype), tiles);
  const bool forward = pass == ConvPass::forward;
  MmaPlan plan = forward ? plan_of_x(c, dtype) : MmaPlan{c, {}, 16, {1, 0}, {}};
  const std::int64_t m = forward ? std::int64_t{c.n} * c.p * c.q : std::int64_t{c.n} * c.h * c.w;
  plan.tiles = tiles.value_or(mma_tiles(m, forward ? c.k : c.c));
  return plan;
}

}  // namespace convoy::CONVOY_GPU
