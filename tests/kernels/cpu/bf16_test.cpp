// bf16 on the CPU beyond what op cases show: rounding, loops held bit for bit against those over
// floats, and bits that do not depend on how work is cut.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/base/bf16.h"
#include "kernels/cpu/isa_list.h"
#include "tests/kernels/cpu/cpu_run.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

using Halves = std::vector<std::uint16_t>;
using Floats = std::vector<float>;

// The values of x, rounded by the definition of bf16.
Halves halves_of(const Floats& x) {
  Halves result;
  for (float value : x) result.push_back(Bf16(value).bits);
  return result;
}

Floats floats_of(const Halves& x) {
  Floats result;
  for (std::uint16_t bits : x) result.push_back(static_cast<float>(std::bit_cast<Bf16>(bits)));
  return result;
}

Buffer put(CpuRun& run, const Halves& values) {
  const Buffer buffer = run.make({std::ssize(values)}, kPlain, DType::bf16);
  run.device().copy_in(run.stream(), buffer.data, values.data(), values.size() * 2);
  return buffer;
}

Halves cast(const Floats& values) {
  CpuRun run;
  const Shape shape = {std::ssize(values)};
  const Buffer y = run.make(shape, kPlain, DType::bf16);
  run.kernels().cast(run.stream(), shape.count(), run.put(shape, values), y);
  return run.memory<std::uint16_t>(y, values.size());
}

/// All results of the four loops of batch norm, what they read being `x`, `dy` and `y`.
template <class Loops, class T>
std::vector<double> batch_norm(const Loops& loops, const std::vector<T>& x,
                               const std::vector<T>& dy, const std::vector<T>& y, int period,
                               std::vector<T>& written) {
  const std::int64_t count = std::ssize(x);
  const Floats factors = fractions(64, 3);
  const float* f = factors.data();
  std::vector<T> out(x.size()), dx(x.size()), dz(x.size());
  std::vector<std::uint16_t> bits(x.size() / 16 + 1);
  std::vector<double> sums(64);
  loops.batch_norm_statistics(x.data(), count, period, sums.data(), sums.data() + 16);
  loops.batch_norm_apply(x.data(), dy.data(), count, f, f + 16, f + 32, true, out.data(),
                         bits.data());
  const cpu::BatchNormPassedOf<T> passed = {dy.data(), nullptr, y.data()};
  loops.batch_norm_reduce(x.data(), passed, count, period, sums.data(), sums.data() + 32,
                          sums.data() + 48);
  loops.batch_norm_gradient(x.data(), passed, count, {f, f + 16, f + 32, f + 48}, dx.data(),
                            dz.data());
  for (const auto& values : {out, dx, dz})
    written.insert(written.end(), values.begin(), values.end());
  for (std::uint16_t word : bits) sums.push_back(word);
  return sums;
}

/// Sets the threads of cpu:0 while it lives.
class ThreadsOf {
 public:
  explicit ThreadsOf(int threads) : outer_(context("cpu:0").threads()) {
    context("cpu:0").set_threads(threads);
  }
  ~ThreadsOf() { context("cpu:0").set_threads(outer_); }
  ThreadsOf(const ThreadsOf&) = delete;
  ThreadsOf& operator=(const ThreadsOf&) = delete;

 private:
  int outer_;
};

/// y, dx, dw and db of a convolution in the layouts that it likes, from operands that bf16 holds.
std::vector<Floats> passes(const Conv2dShape& s, DType dtype) {
  CpuRun run;
  const Conv2dLayouts layouts = run.kernels().conv2d_layouts(s, dtype);
  auto values = [&](const Shape& shape, LayoutId layout, int seed) {
    const Buffer plain = run.make(shape, kPlain, dtype), there = run.make(shape, layout, dtype);
    const Floats x = floats_of(halves_of(fractions(shape.count(), seed)));
    run.kernels().cast(run.stream(), shape.count(), run.put(shape, x), plain);
    run.kernels().reorder(run.stream(), shape, plain, there);
    return there;
  };
  auto read = [&](const Shape& shape, ConstBuffer x) {
    const Buffer plain = run.make(shape, kPlain, x.dtype), floats = run.make(shape);
    run.kernels().reorder(run.stream(), shape, x, plain);
    run.kernels().cast(run.stream(), shape.count(), plain, floats);
    return run.values(shape, floats);
  };
  const Buffer x = values(s.x(), layouts.x, 1), dy = values(s.y(), layouts.y, 2);
  const Floats weights = floats_of(halves_of(fractions(s.weight().count(), 3)));
  const Buffer w = run.put(s.weight(), weights, layouts.weight);
  const Buffer y = run.make(s.y(), layouts.y, dtype), dx = run.make(s.x(), layouts.x, dtype);
  const Buffer dw = run.make(s.weight(), layouts.weight), db = run.make({s.k});
  const Buffer b = run.put({s.k}, fractions(s.k, 4));
  run.kernels().conv2d_forward(run.stream(), s, x, w, b, y);
  run.kernels().conv2d_input_gradient(run.stream(), s, dy, w, dx);
  run.kernels().conv2d_weight_gradient(run.stream(), s, x, dy, dw, db);
  return {read(s.y(), y), read(s.x(), dx), read(s.weight(), dw), read({s.k}, db)};
}

/// The norm of the difference over the norm.
double distance(const Floats& a, const Floats& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / norm);
}

}  // namespace

TEST_CASE("bf16: casts round to nearest, ties to even, and keep what is no number") {
  const float inf = std::numeric_limits<float>::infinity();
  const Floats x = {1,
                    1 + 0x1p-8f,
                    1 + 3 * 0x1p-8f,
                    1 + 0x1.02p-8f,
                    -0.0f,
                    0x1.fep127f,
                    0x1.ffp127f,
                    inf,
                    -inf,
                    3.4e38f,
                    0.1f};
  CHECK(cast(x) == Halves{0x3f80, 0x3f80, 0x3f82, 0x3f81, 0x8000, 0x7f7f, 0x7f80, 0x7f80, 0xff80,
                          0x7f80, 0x3dcd});
  CHECK(std::isnan(floats_of(cast({std::nanf("")}))[0]));
  // More than a vector, and not a multiple of one.
  const Floats many = fractions(1003, 1);
  CHECK(cast(many) == halves_of(many));
}

TEST_CASE("bf16: casts to every other type and back") {
  CpuRun run;
  const Halves x = halves_of({-3.5f, 7, 0, 200});
  for (const auto& [dtype, expected] : {std::pair<DType, Floats>{DType::f32, {-3.5f, 7, 0, 200}},
                                        {DType::f64, {-3.5f, 7, 0, 200}},
                                        {DType::i64, {-3, 7, 0, 200}},
                                        {DType::i32, {-3, 7, 0, 200}}}) {
    CAPTURE(name(dtype));
    const Buffer there = run.make({4}, kPlain, dtype);
    const Buffer back = run.make({4}, kPlain, DType::bf16);
    run.kernels().cast(run.stream(), 4, put(run, x), there);
    run.kernels().cast(run.stream(), 4, there, back);
    CHECK(floats_of(run.memory<std::uint16_t>(back, 4)) == expected);
  }
}

TEST_CASE("bf16: loops of batch norm write what those over floats do, rounded") {
  for (int period : {1, 8, 16}) {
    for (std::int64_t positions : {1, 7, 600}) {
      CAPTURE(period, positions);
      const std::int64_t count = positions * period;
      const Halves x = halves_of(fractions(count, 1)), dy = halves_of(fractions(count, 2)),
                   y = halves_of(fractions(count, 4));
      Halves written;
      Floats expected;
      const std::vector<double> sums = batch_norm(cpu::half_loops(), x, dy, y, period, written);
      const std::vector<double> wanted =
          batch_norm(cpu::loops(), floats_of(x), floats_of(dy), floats_of(y), period, expected);
      CHECK(written == halves_of(expected));
      // Of some rows in float: numbers up to 1 and their products.
      const double bound = 3e-7 * static_cast<double>(positions);
      for (std::size_t i = 0; i < sums.size(); ++i) CHECK(std::abs(sums[i] - wanted[i]) <= bound);
    }
  }
}

TEST_CASE("bf16: weights in a layout of their own are f32") {
  CpuRun run;
  const Conv2dShape s{1, 32, 4, 4, 32, 3, 3, 1, 1, 1, 1};
  const Conv2dLayouts layouts = run.kernels().conv2d_layouts(s, DType::bf16);
  CHECK(layouts.full_weight);
  if (layouts.weight == kPlain) return;  // a build without a convolution library
  expect_error(ErrorKind::internal, {"layout_bytes", "are f32, not bf16"},
               [&] { run.kernels().layout_bytes(layouts.weight, s.weight(), DType::bf16); });
}

TEST_CASE("bf16: convolutions are those of floats, on any number of threads") {
  // Parts of images, Winograd, pieces of several images and a last smaller one, a plain x.
  for (const Conv2dShape& s :
       {Conv2dShape{5, 64, 28, 56, 256, 1, 1}, Conv2dShape{8, 64, 32, 32, 128, 3, 3, 1, 1, 1, 1},
        Conv2dShape{37, 32, 28, 28, 64, 3, 3, 2, 2, 1, 1},
        Conv2dShape{9, 3, 64, 64, 8, 7, 7, 2, 2, 3, 3}}) {
    CAPTURE(s.c, s.r);
    const std::vector<Floats> expected = passes(s, DType::f32);
    for (int threads : {1, 2, 3}) {
      CAPTURE(threads);
      const ThreadsOf scope(threads);
      const std::vector<Floats> found = passes(s, DType::bf16);
      CHECK(passes(s, DType::bf16) == found);
      for (std::size_t i = 0; i < found.size(); ++i) {
        CAPTURE(i);
        CHECK(distance(found[i], expected[i]) < (i < 2 ? 3e-3 : 1e-5));
      }
    }
  }
}

TEST_CASE("bf16: an image has the same bits alone and among others") {
  // By oneDNN, by Winograd, and through few channels.
  for (const Conv2dShape& s :
       {Conv2dShape{8, 64, 32, 32, 64, 1, 1}, Conv2dShape{8, 64, 32, 32, 64, 3, 3, 1, 1, 1, 1},
        Conv2dShape{8, 3, 20, 20, 32, 7, 7, 2, 2, 3, 3}}) {
    CAPTURE(s.c, s.r);
    CpuRun run;
    auto convolve = [&](std::int64_t images) {
      Conv2dShape part = s;
      part.n = images;
      const Halves x = halves_of(fractions(part.x().count(), 1));
      const Buffer y = run.make(part.y(), kPlain, DType::bf16);
      run.kernels().conv2d_forward(run.stream(), part, put(run, x),
                                   run.put(part.weight(), fractions(part.weight().count(), 2)), {},
                                   y);
      return run.memory<std::uint16_t>(y, static_cast<std::size_t>(part.y().count()));
    };
    Halves several = convolve(8);
    const Halves two = convolve(2);
    several.resize(two.size());
    CHECK(several == two);
  }
}

}  // namespace convoy::testing
