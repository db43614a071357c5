// Winograd's convolution held against the plain loops of the reference in double, on whole and on
// cut tiles, and against itself: threads, layouts and other images change no bit.
#include "kernels/cpu/winograd.h"

#include <cmath>

#include "kernels/cpu/isa_list.h"
#include "kernels/cpu/layout.h"
#include "tests/kernels/cpu/cpu_run.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

using cpu::ConvPass;

Conv2dShape conv3x3(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w,
                    std::int64_t k) {
  return {n, c, h, w, k, 3, 3, 1, 1, 1, 1};
}

const std::vector<Conv2dShape> kShapes = {
    conv3x3(1, 64, 28, 28, 64),   // whole tiles
    conv3x3(3, 64, 13, 15, 96),   // tiles over two edges
    conv3x3(3, 192, 14, 11, 64),  // long sums
    conv3x3(8, 64, 7, 7, 1056),   // groups of outputs, blocks shared by the threads
};

template <class T>
struct Results {
  std::vector<T> y, dx, dw;
  friend bool operator==(const Results&, const Results&) = default;
};

// The first `images` are repeated until there are shape.n.
std::vector<float> repeated(const Shape& shape, std::int64_t images, int seed) {
  const std::vector<float> part = fractions(shape.count() / shape[0] * images, seed);
  std::vector<float> result;
  while (std::ssize(result) < shape.count()) {
    result.insert(result.end(), part.begin(), part.end());
  }
  return result;
}

Results<float> convolve(const Conv2dShape& s, const Conv2dLayouts& layouts, std::int64_t images) {
  CpuRun run;
  const KernelTable& k = run.kernels();
  const Buffer x = run.put(s.x(), repeated(s.x(), images, 1), layouts.x);
  const Buffer w = run.put(s.weight(), fractions(s.weight().count(), 2), layouts.weight);
  const Buffer dy = run.put(s.y(), repeated(s.y(), images, 3), layouts.y);
  const Buffer y = run.make(s.y(), layouts.y), dx = run.make(s.x(), layouts.x);
  const Buffer dw = run.make(s.weight(), layouts.weight);
  k.conv2d_forward(run.stream(), s, x, w, {}, y);
  k.conv2d_input_gradient(run.stream(), s, dy, w, dx);
  k.conv2d_weight_gradient(run.stream(), s, x, dy, dw, {});
  return {run.values(s.y(), y), run.values(s.x(), dx), run.values(s.weight(), dw)};
}

Results<float> convolve(const Conv2dShape& s) {
  return convolve(s, context("cpu:0").kernels().conv2d_layouts(s, DType::f32), s.n);
}

std::vector<double> widened(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

Results<double> reference(const Conv2dShape& s) {
  DeviceContext& device = context("ref:0");
  Stream& stream = device.default_stream();
  std::vector<double> x = widened(fractions(s.x().count(), 1)),
                      w = widened(fractions(s.weight().count(), 2)),
                      dy = widened(fractions(s.y().count(), 3));
  Results<double> r = {dy, x, w};
  auto buffer = [](std::vector<double>& values) { return Buffer{values.data(), DType::f64}; };
  device.kernels().conv2d_forward(stream, s, buffer(x), buffer(w), {}, buffer(r.y));
  device.kernels().conv2d_input_gradient(stream, s, buffer(dy), buffer(w), buffer(r.dx));
  device.kernels().conv2d_weight_gradient(stream, s, buffer(x), buffer(dy), buffer(r.dw), {});
  stream.synchronize();
  return r;
}

double error(const std::vector<float>& values, const std::vector<double>& right) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    difference += (values[i] - right[i]) * (values[i] - right[i]);
    norm += right[i] * right[i];
  }
  return std::sqrt(difference / norm);
}

}  // namespace

TEST_CASE("cpu winograd: all three passes agree with the reference") {
  for (const Conv2dShape& shape : kShapes) {
    CAPTURE(shape.n, shape.c, shape.h, shape.w, shape.k);
    const Results<float> ours = convolve(shape);
    const Results<double> right = reference(shape);
    // Measured here: 5e-7 to 1.05e-6, and 1.3e-7 to 7.2e-7 for oneDNN's direct ones.
    CHECK(error(ours.y, right.y) < 2e-6);
    CHECK(error(ours.dx, right.dx) < 2e-6);
    CHECK(error(ours.dw, right.dw) < 2e-6);
  }
}

TEST_CASE("cpu winograd: neither threads nor layouts change a bit") {
  DeviceContext& device = context("cpu:0");
  const int threads = device.threads();
  for (const Conv2dShape& shape : kShapes) {
    CAPTURE(shape.n, shape.c, shape.k);
    device.set_threads(1);
    const Results<float> expected = convolve(shape);
    CHECK(convolve(shape) == expected);
    if (!cpu::winograd_pays(shape, ConvPass::forward, cpu::isa())) continue;
    CHECK(convolve(shape, {}, shape.n) == expected);
    device.set_threads(2);
    CHECK(convolve(shape) == expected);
  }
  device.set_threads(threads);
}

TEST_CASE("cpu winograd: an image's results do not depend on how many others there are") {
  const Conv2dShape few = kShapes.back();
  Conv2dShape many = few;
  many.n = 9 * few.n;
  const Conv2dLayouts layouts = context("cpu:0").kernels().conv2d_layouts(few, DType::f32);
  const Results<float> part = convolve(few), all = convolve(many, layouts, few.n);
  const auto tail = [](const std::vector<float>& values, std::size_t count) {
    return std::vector<float>(values.end() - static_cast<std::ptrdiff_t>(count), values.end());
  };
  CHECK(tail(all.y, part.y.size()) == part.y);
  CHECK(tail(all.dx, part.dx.size()) == part.dx);
  std::vector<double> dw = widened(part.dw);
  for (double& value : dw) value *= 9;
  CHECK(error(all.dw, dw) < 2e-6);
}

TEST_CASE("cpu winograd: what it is taken for depends on the shape and the vectors") {
  const Conv2dShape good = conv3x3(16, 64, 56, 56, 64);
  auto changed = [&](auto member, std::int64_t value) {
    Conv2dShape shape = good;
    shape.*member = value;
    return shape;
  };
  const std::vector<Conv2dShape> bad = {changed(&Conv2dShape::r, 1),
                                        changed(&Conv2dShape::s, 5),
                                        changed(&Conv2dShape::stride_h, 2),
                                        changed(&Conv2dShape::stride_w, 2),
                                        changed(&Conv2dShape::padding_h, 0),
                                        changed(&Conv2dShape::padding_w, 2),
                                        changed(&Conv2dShape::dilation_h, 2),
                                        changed(&Conv2dShape::dilation_w, 2),
                                        changed(&Conv2dShape::groups, 2),
                                        changed(&Conv2dShape::c, 72),
                                        changed(&Conv2dShape::k, 72),
                                        changed(&Conv2dShape::c, 32),
                                        changed(&Conv2dShape::n, 0),
                                        conv3x3(1, 512, 7, 7, 512),
                                        conv3x3(64, 64, 5, 5, 64)};
  for (const cpu::Isa& isa : cpu::isa_list()) {
    CAPTURE(isa.name);
    for (ConvPass pass : {ConvPass::forward, ConvPass::input_gradient, ConvPass::weight_gradient}) {
      CHECK(cpu::winograd_pays(good, pass, isa) == isa.wide);
      for (const Conv2dShape& shape : bad) CHECK_FALSE(cpu::winograd_pays(shape, pass, isa));
    }
  }
}

TEST_CASE("cpu winograd: a shape that it is not for is an internal error") {
  CpuRun run;
  const Conv2dShape s = conv3x3(1, 8, 4, 4, 8);
  const Buffer x = run.make(s.x());
  expect_error(ErrorKind::internal, {"conv2d_forward: Winograd does not fit w", "8"},
               [&] { cpu::submit_winograd(run.stream(), s, ConvPass::forward, x, {}, x); });
}

}  // namespace convoy::testing
