#include "kernels/cuda/conv2d_problem.h"

#include <algorithm>
#include <limits>

namespace convoy::CONVOY_GPU {
namespace {

bool fits(std::int64_t value) {
  return value <= std::numeric_limits<std::int32_t>::max();
}

// Whether channels of `shape` lie side by side, `stored` of them at each place.
bool has_rows(LayoutId layout, const Shape& shape, std::int64_t stored) {
  if (layout == kChannelsLast || layout == kChannelsLast4) {
    return stored_channels(layout, shape[1]) == stored;
  }
  const bool same = shape[1] == 1 || shape[2] * shape[3] == 1;
  return layout == kPlain && same && shape[1] == stored;
}

bool is_ordinary(const Conv2dShape& s) {
  return s.groups == 1 && s.dilation_h == 1 && s.dilation_w == 1 && s.r <= kMaxFilter &&
         s.s <= kMaxFilter && s.n > 0 && s.c > 0 && s.k > 0 && s.out_h() > 0 && s.out_w() > 0;
}

bool fits(const Conv2dShape& s, std::int64_t c) {
  // The tallest tile may reach past the last row.
  constexpr std::int64_t kSlack = 1024;
  return fits(s.h * s.w * c) && fits(s.out_h() * s.out_w() * s.k) && fits(s.k * s.r * s.s * c) &&
         fits(s.n * s.h * s.w + kSlack) && fits(s.n * s.out_h() * s.out_w() + kSlack);
}

int narrow(std::int64_t value) {
  return static_cast<int>(value);
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

std::optional<ConvProblem> conv_problem(const Conv2dShape& s, const Conv2dLayouts& layouts,
                                        int multiple) {
  if (!is_ordinary(s)) return {};
  const bool padded = layouts.x == kChannelsLast4 || layouts.weight == kChannelsLast4;
  const std::int64_t c = stored_channels(padded ? kChannelsLast4 : kChannelsLast, s.c);
  if (!has_rows(layouts.x, s.x(), c) || !has_rows(layouts.weight, s.weight(), c) ||
      !has_rows(layouts.y, s.y(), s.k) || c % multiple != 0 || s.k % multiple != 0 || !fits(s, c)) {
    return {};
  }
  return ConvProblem{narrow(s.n),        narrow(s.h),        narrow(s.w),
                     narrow(c),          narrow(s.k),        narrow(s.r),
                     narrow(s.s),        narrow(s.out_h()),  narrow(s.out_w()),
                     narrow(s.stride_h), narrow(s.stride_w), narrow(s.padding_h),
                     narrow(s.padding_w)};
}

std::optional<PairedProblem> paired(const ConvProblem& c) {
  if (c.c != 4 || c.w % 2 != 0 || c.stride_w % 2 != 0) return {};
  const int lead = c.padding_w % 2, pairs = (lead + c.s + 1) / 2;
  PairedProblem result{c, {c.s, lead, 2 * pairs}};
  result.problem.c = 8;
  result.problem.w = c.w / 2;
  result.problem.s = pairs;
  result.problem.stride_w = c.stride_w / 2;
  result.problem.padding_w = (c.padding_w + lead) / 2;
  return result;
}

DepthSplit split_depth(std::int64_t m, std::int64_t n, std::int64_t depth, int tile_m, int tile_n) {
  // Parts of whole k-steps of any kernel, and none so short that its start costs more than its sum.
  constexpr std::int64_t kStep = 64, kShortest = 256, kTilesToFill = 256, kMostParts = 32768;
  const std::int64_t tiles = ceil_div(m, tile_m) * ceil_div(n, tile_n);
  const std::int64_t to_fill = std::min(kTilesToFill / tiles, depth / kShortest);
  const std::int64_t wanted = std::max({to_fill, ceil_div(depth, kLongestSum), std::int64_t{1}});
  const std::int64_t parts = std::min(wanted, kMostParts);
  const std::int64_t length = std::max(ceil_div(ceil_div(depth, parts), kStep) * kStep, kStep);
  return {narrow(std::max(ceil_div(depth, length), std::int64_t{1})), narrow(length)};
}

}  // namespace convoy::CONVOY_GPU
