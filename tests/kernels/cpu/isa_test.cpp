// The loops of every instruction set that this machine has, held against each other: they sum in
// the same order, so all their results agree bit for bit.
#include "kernels/cpu/isa.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/isa_list.h"
#include "tests/kernels/cpu/cpu_run.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

using cpu::VectorTable;

/// All results of a test as bytes, so that NaN equals itself.
class Bytes {
 public:
  template <class T>
  void add(const std::vector<T>& values) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + values.size() * sizeof(T));
    std::memcpy(bytes_.data() + at, values.data(), values.size() * sizeof(T));
  }
  friend bool operator==(const Bytes&, const Bytes&) = default;

 private:
  std::vector<unsigned char> bytes_;
};

// Runs `work` with the loops of each instruction set and compares with the first.
template <class Work>
void agree(const Work& work) {
  const Bytes baseline = work(*cpu::isa_list().back().loops);
  for (const cpu::Isa& isa : cpu::isa_list()) {
    if (!isa.supported) continue;
    CAPTURE(isa.name);
    CHECK(work(*isa.loops) == baseline);
  }
}

Bytes batch_norm(const VectorTable& loops, int period, std::int64_t count) {
  const std::vector<float> x = fractions(count, 1), dy = fractions(count, 2);
  std::vector<float> y(x.size()), dx(x.size()), dz(x.size());
  std::vector<std::uint16_t> bits(x.size() / 16 + 1);
  std::vector<double> mean(16), m2(16), sum(16), sum_x(16);
  const std::vector<float> factors = fractions(64, 3);
  loops.batch_norm_statistics(x.data(), count, period, mean.data(), m2.data());
  loops.batch_norm_apply(x.data(), dy.data(), count, factors.data(), factors.data() + 16,
                         factors.data() + 32, true, y.data(), bits.data());
  Bytes result;
  for (const cpu::BatchNormPassed& passed :
       {cpu::BatchNormPassed{dy.data(), bits.data(), nullptr}, {dy.data(), nullptr, y.data()}}) {
    std::ranges::fill(sum, 0);
    std::ranges::fill(sum_x, 0);
    loops.batch_norm_reduce(x.data(), passed, count, period, mean.data(), sum.data(), sum_x.data());
    loops.batch_norm_gradient(
        x.data(), passed, count,
        {factors.data(), factors.data() + 16, factors.data() + 32, factors.data() + 48}, dx.data(),
        dz.data());
    for (const auto& values : {sum, sum_x}) result.add(values);
    for (const auto& values : {dx, dz}) result.add(values);
  }
  for (const auto& values : {mean, m2}) result.add(values);
  result.add(y);
  result.add(bits);
  return result;
}

Bytes pool(const VectorTable& loops, int period) {
  const cpu::PoolGeometry g = {9, 8, 5, 4, 3, 3, 2, 2, 1, 1, true};
  std::vector<float> x = fractions(72 * period, 4);
  x[3] = x[40] = std::numeric_limits<float>::quiet_NaN();
  const std::size_t count = 20 * static_cast<std::size_t>(period);
  std::vector<float> y(count), average(count), dx(x.size()), dx_average(x.size());
  std::vector<std::uint8_t> index(count);
  loops.max_pool_forward(g, period, x.data(), y.data(), index.data());
  loops.max_pool_backward(g, period, y.data(), index.data(), dx.data());
  loops.avg_pool_forward(g, period, x.data(), average.data());
  loops.avg_pool_backward(g, period, average.data(), dx_average.data());
  Bytes result;
  result.add(index);
  for (const auto& values : {y, dx, average, dx_average}) result.add(values);
  return result;
}

Bytes optimizers(const VectorTable& loops) {
  const std::int64_t count = 1003;
  const std::vector<float> gradient = fractions(count, 5);
  std::vector<float> weight = fractions(count, 6), m = fractions(count, 7), v(m.size(), 0.5f);
  const cpu::MomentumStep step = {0.1f, 0.9f, 0.5f, 0.01f, 0.8f, true, false};
  loops.sgd(count, step, gradient.data(), m.data(), weight.data());
  loops.lars(count, step, gradient.data(), m.data(), weight.data());
  loops.adamw(count, {0.9f, 0.99f, 0.1f, 0.01f, 0.5f, 0.999f, 0.1f, 1.5f, 1e-8f}, gradient.data(),
              m.data(), v.data(), weight.data());
  Bytes result;
  for (const auto& values : {weight, m, v}) result.add(values);
  return result;
}

Bytes sums(const VectorTable& loops) {
  const std::int64_t count = 1003;
  const std::vector<float> x = fractions(count, 8), t = fractions(count, 9);
  std::vector<float> dx(x.size()), rows(100), blocks(17 * 59), back(x.size());
  Bytes result;
  result.add(std::vector<double>{loops.sum(count, x.data()), loops.sum_of_squares(count, x.data()),
                                 loops.mse(count, x.data(), t.data(), 0.25f, dx.data())});
  loops.sum_rows(10, 100, 100, 0.5, x.data(), rows.data());
  blocks.resize(59 * 16);
  loops.to_blocks(x.data(), 13, 59, 16, blocks.data());
  loops.from_blocks(blocks.data(), 13, 59, 16, back.data());
  for (const auto& values : {dx, rows, blocks, back}) result.add(values);
  return result;
}

// Counts about a vector's width, and one of several rounds.
Bytes random_numbers(const VectorTable& loops) {
  const cpu::RandomKey key = {0x0123456789ABCDEF, 0xFEDCBA9876543210};
  Bytes result;
  for (std::int64_t count : {1, 2, 3, 15, 16, 17, 127, 128, 129, 5000}) {
    std::vector<double> numbers(static_cast<std::size_t>(count) + 1, -7);
    loops.random_uniform(key, 0xFFFFFFF0, count, numbers.data());  // into the counter's upper word
    result.add(numbers);
    loops.random_normal(key, 0xFFFFFFF0, count, numbers.data());
    result.add(numbers);
    CHECK(numbers.back() == -7);
  }
  return result;
}

}  // namespace

TEST_CASE("cpu loops: random numbers agree on every instruction set") {
  agree(random_numbers);
}

TEST_CASE("cpu loops: batch norm agrees on every instruction set") {
  for (int period : {1, 8, 16}) {
    for (std::int64_t positions : {1, 7, 600}) {
      agree(
          [&](const VectorTable& loops) { return batch_norm(loops, period, positions * period); });
    }
  }
}

TEST_CASE("cpu loops: pooling agrees on every instruction set") {
  for (int period : {1, 8, 16}) {
    agree([&](const VectorTable& loops) { return pool(loops, period); });
  }
}

TEST_CASE("cpu loops: optimizers agree on every instruction set") {
  agree(optimizers);
}

TEST_CASE("cpu loops: sums and blocks agree on every instruction set") {
  agree(sums);
}

TEST_CASE("cpu loops: a product of whole numbers is exact on every instruction set") {
  // Larger than a packed depth, and no multiple of any tile.
  const std::int64_t m = 37, n = 75, k = cpu::kGemmDepth + 44;
  const std::vector<float> a = integers(m * k, 1), b = integers(k * n, 2);
  std::vector<float> expected(static_cast<std::size_t>(m * n), 1.0f);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t l = 0; l < k; ++l)
        expected[static_cast<std::size_t>(i * n + j)] +=
            a[static_cast<std::size_t>(i * k + l)] * b[static_cast<std::size_t>(l * n + j)];
  for (const cpu::Isa& isa : cpu::isa_list()) {
    if (!isa.supported) continue;
    CAPTURE(isa.name);
    std::vector<float> c(expected.size(), 1.0f), pack(static_cast<std::size_t>(cpu::kGemmPack));
    isa.loops->gemm_tile(m, n, k, {a.data(), k, 1}, {b.data(), n, 1}, true, c.data(), n,
                         pack.data());
    CHECK(c == expected);
  }
}

TEST_CASE("cpu isa: the best one is taken, another by its name") {
  const cpu::Isa& best = cpu::choose_isa("");
  CHECK(best.supported);
  CHECK(&cpu::choose_isa(nullptr) == &best);
  CHECK(&cpu::choose_isa(best.name) == &best);
  CHECK(std::string(cpu::choose_isa("baseline").name) == "baseline");
}

TEST_CASE("cpu isa: an unknown name is a usage error that names the known ones") {
  expect_error(ErrorKind::usage, {"CONVOY_CPU_ISA: 'mmx' is unknown here", "baseline"},
               [] { cpu::choose_isa("mmx"); });
}

}  // namespace convoy::testing
