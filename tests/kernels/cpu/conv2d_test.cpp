// Convolutions with operands in any mix of layouts: on small whole numbers all of them, and the
// plain loops of the reference, give the same bits.
#include "kernels/cpu/layout.h"
#include "tests/kernels/cpu/cpu_run.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

const std::vector<Conv2dShape> kShapes = {
    {2, 16, 9, 11, 32, 3, 3, 1, 1, 1, 1},
    {3, 3, 23, 19, 16, 7, 7, 2, 2, 3, 3},
    {2, 32, 9, 9, 48, 1, 1, 2, 2},
    {2, 20, 7, 7, 24, 3, 3, 1, 1, 1, 1},
    {2, 12, 10, 7, 6, 3, 2, 1, 2, 1, 0},
    {2, 16, 12, 12, 16, 3, 3, 1, 1, 2, 2, 2, 2},
    {2, 16, 8, 8, 32, 3, 3, 1, 1, 1, 1, 1, 1, 2},
    {2, 32, 8, 8, 32, 3, 3, 1, 1, 1, 1, 1, 1, 32},
};

struct Layouts {
  LayoutId x, w, y;
};

std::vector<Layouts> mixes(LayoutId weight) {
  std::vector<Layouts> result;
  for (LayoutId x : {kPlain, cpu::kBlock8, cpu::kBlock16})
    for (LayoutId y : {kPlain, cpu::kBlock8, cpu::kBlock16})
      for (LayoutId w : {kPlain, weight}) result.push_back({x, w, y});
  return result;
}

struct Results {
  std::vector<float> y, dx, dw, db;
  friend bool operator==(const Results&, const Results&) = default;
};

Results convolve(const Conv2dShape& s, const Layouts& layouts) {
  CpuRun run;
  const KernelTable& k = run.kernels();
  const Buffer x = run.put(s.x(), integers(s.x().count(), 1), layouts.x);
  const Buffer w = run.put(s.weight(), integers(s.weight().count(), 2), layouts.w);
  const Buffer b = run.put({s.k}, integers(s.k, 3));
  const Buffer dy = run.put(s.y(), integers(s.y().count(), 4), layouts.y);
  const Buffer y = run.make(s.y(), layouts.y), dx = run.make(s.x(), layouts.x);
  const Buffer dw = run.make(s.weight(), layouts.w), db = run.make({s.k});
  k.conv2d_forward(run.stream(), s, x, w, b, y);
  k.conv2d_input_gradient(run.stream(), s, dy, w, dx);
  k.conv2d_weight_gradient(run.stream(), s, x, dy, dw, db);
  return {run.values(s.y(), y), run.values(s.x(), dx), run.values(s.weight(), dw),
          run.values({s.k}, db)};
}

// y by the definition.
std::vector<float> forward_by_definition(const Conv2dShape& s) {
  const std::vector<float> x = integers(s.x().count(), 1), w = integers(s.weight().count(), 2);
  std::vector<float> y;
  const std::int64_t channels = s.c / s.groups;
  auto at = [&](std::int64_t n, std::int64_t c, std::int64_t i, std::int64_t j) {
    const bool inside = i >= 0 && i < s.h && j >= 0 && j < s.w;
    return inside ? x[static_cast<std::size_t>(((n * s.c + c) * s.h + i) * s.w + j)] : 0.0f;
  };
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t k = 0; k < s.k; ++k)
      for (std::int64_t p = 0; p < s.out_h(); ++p)
        for (std::int64_t q = 0; q < s.out_w(); ++q) {
          float sum = integers(s.k, 3)[static_cast<std::size_t>(k)];
          for (std::int64_t i = 0; i < channels * s.r * s.s; ++i) {
            const std::int64_t c = i / (s.r * s.s), r = i / s.s % s.r, t = i % s.s;
            sum += w[static_cast<std::size_t>(k * channels * s.r * s.s + i)] *
                   at(n, k / (s.k / s.groups) * channels + c,
                      p * s.stride_h - s.padding_h + r * s.dilation_h,
                      q * s.stride_w - s.padding_w + t * s.dilation_w);
          }
          y.push_back(sum);
        }
  return y;
}

}  // namespace

TEST_CASE("cpu conv2d: every mix of layouts gives the same bits") {
  for (const Conv2dShape& shape : kShapes) {
    const LayoutId weight = context("cpu:0").kernels().conv2d_layouts(shape, DType::f32).weight;
    const Results plain = convolve(shape, {kPlain, kPlain, kPlain});
    CAPTURE(shape.c, shape.k, shape.r, shape.groups);
    CHECK(plain.y == forward_by_definition(shape));
    for (const Layouts& layouts : mixes(weight)) {
      CAPTURE(layouts.x, layouts.w, layouts.y);
      CHECK(convolve(shape, layouts) == plain);
    }
  }
}

TEST_CASE("cpu conv2d: the number of threads may change between two calls") {
  DeviceContext& device = context("cpu:0");
  const int threads = device.threads();
  const Conv2dShape& shape = kShapes.front();
  const Results expected = convolve(shape, {kPlain, kPlain, kPlain});
  for (int wanted : {1, 3, 2}) {
    device.set_threads(wanted);
    const Conv2dLayouts layouts = device.kernels().conv2d_layouts(shape, DType::f32);
    CHECK(convolve(shape, {layouts.x, layouts.weight, layouts.y}) == expected);
  }
  device.set_threads(threads);
}

TEST_CASE("cpu conv2d: types without kernels are refused with a way out") {
  CpuRun run;
  const Conv2dShape s{1, 1, 2, 2, 1, 1, 1};
  const Buffer x = run.make(s.x(), kPlain, DType::f64);
  expect_error(ErrorKind::usage, {"conv2d_forward: cpu:0 computes in f32", ", not f64; use ref:K"},
               [&] { run.kernels().conv2d_forward(run.stream(), s, x, x, {}, x); });
}

TEST_CASE("cpu conv2d: activations in a weight layout are an internal error") {
  CpuRun run;
  const Conv2dShape s{1, 1, 2, 2, 1, 1, 1};
  const Buffer x = run.make(s.x());
  ConstBuffer wrong = x;
  wrong.layout = 99;
  expect_error(ErrorKind::internal, {"conv2d_forward", "x is in layout 99"},
               [&] { run.kernels().conv2d_forward(run.stream(), s, wrong, x, {}, x); });
}

}  // namespace convoy::testing
