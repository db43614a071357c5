// Index work of convolutions as products, held against the definition, without a device.
#include "kernels/cuda/conv2d_problem.h"

#include <set>
#include <tuple>

#include "kernels/cuda/simt_plan.h"
#include "tests/kernels/cuda/resnet_shapes.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

using namespace convoy::CONVOY_GPU;

constexpr Conv2dLayouts kRows{kChannelsLast, kChannelsLast, kChannelsLast};

ConvProblem problem(const Conv2dShape& shape) {
  return conv_problem(shape, kRows, 4).value();
}

// Strides, filters and paddings on even and odd images: classes of all kinds.
std::vector<Conv2dShape> shapes() {
  return {
      {1, 4, 8, 8, 4, 3, 3, 1, 1, 1, 1},   {1, 4, 8, 8, 4, 3, 3, 2, 2, 1, 1},
      {1, 4, 9, 7, 4, 3, 3, 2, 2, 1, 1},   {1, 4, 9, 8, 4, 1, 1, 2, 2},
      {1, 4, 15, 14, 4, 7, 7, 2, 2, 3, 3}, {1, 4, 11, 13, 4, 3, 3, 3, 3, 1, 1},
      {1, 4, 13, 17, 4, 5, 5, 6, 6, 2, 2}, {1, 4, 5, 9, 4, 2, 3, 1, 4, 0, 2},
      {1, 4, 1, 2, 4, 1, 1, 3, 3},         {1, 4, 6, 6, 4, 1, 1, 2, 2, 2, 2},
  };
}

// One meeting of x and y in the filter: (x row, x column, y row, y column, r, s).
using Meeting = std::tuple<int, int, int, int, int, int>;

std::set<Meeting> meetings(const ConvProblem& c) {
  std::set<Meeting> all;
  for (int p = 0; p < c.p; ++p)
    for (int q = 0; q < c.q; ++q)
      for (int r = 0; r < c.r; ++r)
        for (int s = 0; s < c.s; ++s) {
          const int h = p * c.stride_h - c.padding_h + r, w = q * c.stride_w - c.padding_w + s;
          if (h >= 0 && h < c.h && w >= 0 && w < c.w) all.insert({h, w, p, q, r, s});
        }
  return all;
}

// Calls visit(i, j, source row, source column, r, s) for all taps that places meet.
template <class Visit>
void for_each_tap(const Gather& g, Visit visit) {
  for (int i = 0; i < g.places_h; ++i)
    for (int j = 0; j < g.places_w; ++j)
      for (int a = 0; a < g.taps_h; ++a)
        for (int b = 0; b < g.taps_w; ++b) {
          const int h = g.origin_h + i * g.place_step_h + a * g.tap_step_h;
          const int w = g.origin_w + j * g.place_step_w + b * g.tap_step_w;
          if (h < 0 || h >= g.source_h || w < 0 || w >= g.source_w) continue;
          visit(i, j, h, w, g.first_r + a * g.step_r, g.first_s + b * g.step_s);
        }
}

int places_of_class(const ConvProblem& c, int index) {
  return input_gradient_gather(c, index).places();
}

}  // namespace

TEST_CASE("conv2d problem: forward places meet the definition's taps") {
  for (const Conv2dShape& shape : shapes()) {
    const ConvProblem c = problem(shape);
    std::set<Meeting> met;
    for_each_tap(forward_gather(c), [&](int i, int j, int h, int w, int r, int s) {
      CHECK(met.insert({h, w, i, j, r, s}).second);
    });
    CHECK(met == meetings(c));
  }
}

TEST_CASE("conv2d problem: pairs of pixels meet the definition's taps, and taps of zero") {
  for (const Conv2dShape& shape :
       {Conv2dShape{1, 4, 8, 10, 4, 7, 7, 2, 2, 3, 3}, Conv2dShape{1, 4, 6, 8, 4, 3, 4, 1, 2, 1, 2},
        Conv2dShape{1, 4, 5, 6, 4, 2, 5, 3, 4, 0, 1}, Conv2dShape{1, 4, 4, 4, 4, 1, 1, 2, 2}}) {
    const ConvProblem c = problem(shape);
    const auto pairs = paired(c);
    REQUIRE(pairs);
    CHECK(pairs->rows.padded == 2 * pairs->problem.s);
    std::set<Meeting> met;
    for_each_tap(forward_gather(pairs->problem), [&](int i, int j, int h, int pair, int r, int s) {
      for (int pixel : {0, 1}) {
        const int tap = 2 * s + pixel - pairs->rows.lead;
        if (tap < 0 || tap >= pairs->rows.taps) continue;
        CHECK(met.insert({h, 2 * pair + pixel, i, j, r, tap}).second);
      }
    });
    CHECK(met == meetings(c));
  }
}

TEST_CASE("conv2d problem: pixels go by pairs where all rows hold whole ones") {
  CHECK_FALSE(paired(problem({1, 4, 8, 9, 4, 7, 7, 2, 2, 3, 3})));
  CHECK_FALSE(paired(problem({1, 4, 8, 8, 4, 7, 7, 2, 1, 3, 3})));
  CHECK_FALSE(paired(problem({1, 8, 8, 8, 4, 7, 7, 2, 2, 3, 3})));
}

TEST_CASE("conv2d problem: parity classes meet each tap of each pixel once") {
  for (const Conv2dShape& shape : shapes()) {
    const ConvProblem c = problem(shape);
    std::set<Meeting> met;
    for (int index = 0; index < parity_classes(c); ++index) {
      for_each_tap(input_gradient_gather(c, index), [&](int i, int j, int p, int q, int r, int s) {
        const int pixel = parity_pixel(c, index, i, j) / c.c;
        CHECK(met.insert({pixel / c.w, pixel % c.w, p, q, r, s}).second);
      });
    }
    CHECK(met == meetings(c));
  }
}

TEST_CASE("conv2d problem: parity classes share out all pixels") {
  for (const Conv2dShape& shape : shapes()) {
    const ConvProblem c = problem(shape);
    std::set<int> pixels;
    int places = 0;
    for (int index = 0; index < parity_classes(c); ++index) {
      const Gather g = input_gradient_gather(c, index);
      CHECK(g.places() <= places_of_class(c, 0));
      places += g.places();
      for (int i = 0; i < g.places_h; ++i) {
        for (int j = 0; j < g.places_w; ++j) pixels.insert(parity_pixel(c, index, i, j));
      }
    }
    CHECK(places == c.h * c.w);
    CHECK(std::ssize(pixels) == c.h * c.w);
    CHECK(*pixels.rbegin() == (c.h * c.w - 1) * c.c);
  }
}

TEST_CASE("conv2d problem: as many classes as the strides have remainders") {
  auto classes = [](std::int64_t stride_h, std::int64_t stride_w) {
    return parity_classes(problem({1, 4, 12, 12, 4, 3, 3, stride_h, stride_w, 1, 1}));
  };
  CHECK(classes(1, 1) == 1);
  CHECK(classes(2, 2) == 4);
  CHECK(classes(3, 3) == 9);
  CHECK(classes(6, 6) == 36);
  CHECK(classes(1, 3) == 3);
}

TEST_CASE(
    "conv2d problem: a 3x3 of stride 2 has classes of 1, 2, 2 and 4 taps, unequal on odd rows") {
  const ConvProblem c = problem({1, 4, 9, 9, 4, 3, 3, 2, 2, 1, 1});
  const int taps[] = {1, 2, 2, 4}, places[] = {25, 20, 20, 16};
  for (int index = 0; index < 4; ++index) {
    CHECK(input_gradient_gather(c, index).taps() == taps[index]);
    CHECK(places_of_class(c, index) == places[index]);
  }
}

TEST_CASE("conv2d problem: three of four classes of a 1x1 of stride 2 have no taps") {
  const ConvProblem c = problem({1, 4, 8, 8, 4, 1, 1, 2, 2});
  CHECK(input_gradient_gather(c, 0).taps() == 1);
  for (int index = 1; index < 4; ++index) {
    CHECK(input_gradient_gather(c, index).taps() == 0);
    CHECK(places_of_class(c, index) == 16);
  }
}

TEST_CASE("conv2d problem: what has no rows of channels has no problem") {
  const Conv2dShape usual{2, 8, 5, 5, 16, 3, 3};
  CHECK(conv_problem(usual, kRows, 8));
  CHECK(!conv_problem(usual, {}, 4));
  CHECK(!conv_problem(usual, {kChannelsLast, kChannelsLast, kPlain}, 4));
  CHECK(!conv_problem(usual, kRows, 16));
  Conv2dShape other = usual;
  other.groups = 2;
  CHECK(!conv_problem(other, kRows, 4));
  other = usual;
  other.dilation_w = 2;
  CHECK(!conv_problem(other, kRows, 4));
  other = usual;
  other.n = 0;
  CHECK(!conv_problem(other, kRows, 4));
  CHECK(!conv_problem({1, 4, 40, 40, 4, 32, 1}, kRows, 4));
  CHECK(conv_problem({1, 4, 40, 40, 4, 31, 1}, kRows, 4));
  // Plain rows are rows of channels where a channel has one place.
  CHECK(conv_problem({2, 8, 1, 1, 16, 1, 1}, {}, 4));
  CHECK(!conv_problem({2, 6, 1, 1, 16, 1, 1}, {}, 4));
}

TEST_CASE("conv2d problem: images of three channels have four stored ones") {
  const Conv2dShape stem{2, 3, 32, 32, 64, 7, 7, 2, 2, 3, 3};
  const auto c = conv_problem(stem, {kChannelsLast4, kChannelsLast4, kChannelsLast}, 4);
  REQUIRE(c);
  CHECK(c->c == 4);
  CHECK(forward_gather(*c).depth() == 196);
  CHECK(!conv_problem(stem, {kChannelsLast4, kChannelsLast, kChannelsLast}, 1));
}

TEST_CASE("conv2d problem: offsets across images need 64 bits, inside of them 32") {
  const auto many = conv_problem({2676, 64, 112, 112, 64, 1, 1, 2, 2}, kRows, 4);
  REQUIRE(many);
  CHECK(many->x_image() * (many->n - 1) > std::int64_t{1} << 31);
  CHECK(!conv_problem({1, 64, 8192, 8192, 64, 3, 3}, kRows, 4));   // an image of 2^32 values
  CHECK(!conv_problem({200000, 4, 112, 112, 4, 3, 3}, kRows, 4));  // 2^31 pixels
  CHECK(!conv_problem({1, 65536, 3, 3, 32768, 1, 1}, kRows, 4));   // weights of 2^31 values
}

TEST_CASE("split_depth: parts cover the depth, none is empty, none is too long to be summed") {
  for (std::int64_t depth : {1, 63, 64, 65, 392, 4096, 4097, 200704, 3211264}) {
    for (int extent : {64, 256, 4608}) {
      const DepthSplit split = split_depth(extent, extent, depth, 128, 128);
      CHECK(std::int64_t{split.count} * split.length >= depth);
      CHECK(std::int64_t{split.count - 1} * split.length < depth);
      CHECK(split.length <= kLongestSum);
      CHECK(split.length % 64 == 0);
    }
  }
  CHECK(split_depth(64, 64, 0, 64, 64).count == 1);
  const DepthSplit most = split_depth(64, 64, 2000000000, 64, 64);
  CHECK(most.count <= 65535);
  CHECK(std::int64_t{most.count} * most.length >= 2000000000);
}

TEST_CASE("split_depth: scratch of ResNet's gradients stays small") {
  for (const Conv2dShape& s : resnet_shapes(256, 224)) {
    const std::int64_t columns = s.r * s.s * stored_channels(kChannelsLast4, s.c);
    const WeightGradientPlan plan =
        simt_weight_gradient_plan(s.k, columns, s.n * s.out_h() * s.out_w(), SimtTileSize::chosen);
    CHECK(plan.split.count * s.k * columns * 4 <= 48 << 20);
  }
}

TEST_CASE("simt_tile: large tiles where a GPU has enough of them") {
  using enum SimtTileSize;
  CHECK(simt_tile(802816, 128, 1, chosen) == large);
  CHECK(simt_tile(802816, 64, 1, chosen) == small);
  CHECK(simt_tile(1568, 512, 1, chosen) == small);   // 32 images of 7x7: 52 large tiles
  CHECK(simt_tile(12544, 512, 1, chosen) == large);  // 256 of them
  CHECK(simt_tile(3136, 128, 1, chosen) == small);
  CHECK(simt_tile(3136, 128, 9, chosen) == large);  // parts run together
  CHECK(simt_tile(8, 8, 1, large) == large);
}

}  // namespace convoy::testing
