// Kernels over many buffers: more of them than a table holds, empty ones, long ones, two dtypes.
#include <fmt/format.h>

#include <list>

#include "tests/kernels/cuda/device_array.h"
#include "tests/support/expect_error.h"
#include "tests/support/formula.h"

namespace convoy::testing {
namespace {

// Counts of buffers around chunks and vectors, among them none at all, and 1100 in all.
std::vector<std::int64_t> counts() {
  std::vector<std::int64_t> result = {0, 4095, 4096, 4097, 0, 0, 8191, 8192, 8193, 20001, 1};
  while (result.size() < 1099) result.push_back(std::ssize(result) % 7);
  result.push_back(0);
  return result;
}

template <class T>
std::vector<T> typed(const std::vector<double>& values) {
  std::vector<T> result;
  for (double value : values) result.push_back(as<T>(value));
  return result;
}

// Parameters of one dtype in one piece of memory, as an engine keeps them, and the host's copies.
template <class T>
struct Parameters {
  std::vector<std::int64_t> counts;
  DeviceArray<T> weights, gradients, state1, state2;

  Parameters(const std::vector<std::int64_t>& sizes, std::int64_t total)
      : counts(sizes),
        weights(typed<T>(integers("weights", total, 8))),
        gradients(typed<T>(integers("gradients", total, 8))),
        state1(typed<T>(integers("state", total, 8))),
        state2(typed<T>(integers("state", total, 8))) {}

  std::vector<OptimizerSlot> slots() const {
    std::vector<OptimizerSlot> result;
    std::int64_t first = 0;
    auto at = [&](const DeviceArray<T>& array) {
      return Buffer{array.buffer().template as<T>() + first, dtype_of<T>};
    };
    for (std::int64_t count : counts) {
      result.push_back({count, at(weights), at(gradients), at(state1), at(state2), 0.5, true});
      first += count;
    }
    return result;
  }
};

std::int64_t total_of(const std::vector<std::int64_t>& counts) {
  std::int64_t total = 0;
  for (std::int64_t count : counts) total += count;
  return total;
}

// With rates that are powers of two and small integers, all of the step is exact.
template <class T>
std::vector<T> sgd_by_hand(std::int64_t total) {
  const auto w = integers("weights", total, 8), g = integers("gradients", total, 8),
             v = integers("state", total, 8);
  std::vector<T> result;
  for (std::int64_t i = 0; i < total; ++i) {
    result.push_back(as<T>(w[i] - 0.25 * (0.5 * v[i] + g[i] + 0.5 * w[i])));
  }
  return result;
}

}  // namespace

TEST_CASE("gpu sum_of_squares: many buffers of all types, empty ones too") {
  const std::vector<std::int64_t> sizes = counts();
  const std::int64_t total = total_of(sizes);
  const std::vector<double> values = integers("squares", total, 8);
  const DeviceArray<float> floats(typed<float>(values));
  const DeviceArray<double> doubles(typed<double>(values));
  const DeviceArray<Bf16> bf16s(typed<Bf16>(values));
  std::vector<ConstBuffer> buffers;
  std::vector<double> expected;
  std::int64_t first = 0;
  for (std::int64_t count : sizes) {
    switch (buffers.size() % 3) {
      case 0:
        buffers.push_back({floats.buffer().as<float>() + first, DType::f32});
        break;
      case 1:
        buffers.push_back({doubles.buffer().as<double>() + first, DType::f64});
        break;
      default:
        buffers.push_back({bf16s.buffer().as<Bf16>() + first, DType::bf16});
    }
    double sum = 0;
    for (std::int64_t i = first; i < first + count; ++i) sum += values[i] * values[i];
    expected.push_back(sum);
    first += count;
  }
  const DeviceArray<double> result(std::ssize(sizes));
  gpu_kernels().sum_of_squares(gpu_stream(), buffers, sizes, result.buffer());
  CHECK(result.values() == expected);
  gpu_kernels().sum_of_squares(gpu_stream(), {}, {}, result.buffer());
  CHECK(result.values() == expected);
}

TEST_CASE("gpu sgd_update: many parameters of two dtypes, empty ones too") {
  const std::vector<std::int64_t> sizes = counts();
  const std::int64_t total = total_of(sizes);
  const Parameters<float> floats(sizes, total);
  const Parameters<double> doubles(sizes, total);
  std::vector<OptimizerSlot> slots = floats.slots();
  for (const OptimizerSlot& slot : doubles.slots()) slots.push_back(slot);
  SgdArgs args;
  args.lr = 0.25;
  args.momentum = 0.5;
  gpu_kernels().sgd_update(gpu_stream(), slots, args);
  CHECK(floats.weights.values() == sgd_by_hand<float>(total));
  CHECK(doubles.weights.values() == sgd_by_hand<double>(total));
  CHECK(floats.gradients.values() == typed<float>(integers("gradients", total, 8)));
  gpu_kernels().sgd_update(gpu_stream(), {}, args);
  CHECK(floats.weights.values() == sgd_by_hand<float>(total));
}

TEST_CASE("gpu sgd_update: a first step reads no momentum, without memory none is written") {
  const DeviceArray<float> w(std::vector<float>(5, 4.0f)), g(std::vector<float>(5, 2.0f)), v(5);
  SgdArgs args;
  args.lr = 0.5;
  args.momentum = 0.5;
  gpu_kernels().sgd_update(gpu_stream(),
                           {{5, w.buffer(), g.buffer(), v.buffer(), {}, 0, true, true}}, args);
  CHECK(w.values() == std::vector<float>(5, 3.0f));
  CHECK(v.values() == std::vector<float>(5, 2.0f));
  args.momentum = 0;
  gpu_kernels().sgd_update(gpu_stream(), {{5, w.buffer(), g.buffer(), {}, {}}}, args);
  CHECK(w.values() == std::vector<float>(5, 2.0f));
}

TEST_CASE("gpu lars_update: each parameter has its own norms, some adapt and some do not") {
  // Norms of one value: w / g, so that with trust 1 and no decay the step is w.
  constexpr int kSlots = 300;
  std::vector<float> weights = counting<float>(kSlots), gradients = counting<float>(kSlots, 8);
  const DeviceArray<float> w(weights), g(gradients);
  std::vector<OptimizerSlot> slots;
  std::vector<float> expected;
  for (int i = 0; i < kSlots; ++i) {
    const bool adapts = i % 3 != 0;
    slots.push_back({1,
                     Buffer{w.buffer().as<float>() + i},
                     Buffer{g.buffer().as<float>() + i},
                     {},
                     {},
                     0,
                     adapts});
    expected.push_back(weights[i] - 0.5f * (adapts ? weights[i] : gradients[i]));
  }
  gpu_kernels().lars_update(gpu_stream(), slots, {0.5, 0, 1, 0, false, 1});
  const std::vector<float> actual = w.values();
  for (int i = 0; i < kSlots; ++i) {
    CHECK(std::abs(actual[i] - expected[i]) <= 2e-7 * std::abs(expected[i]) + 1e-6);
  }
}

TEST_CASE("gpu optimizers: what they need and do not get is refused") {
  const DeviceArray<float> x(1);
  const DeviceArray<Bf16> half(1);
  auto slot = [&](Buffer w) { return std::vector<OptimizerSlot>{{1, w, w, {}, {}}}; };
  SgdArgs args;
  args.momentum = 0.5;
  check_error([&] { gpu_kernels().sgd_update(gpu_stream(), slot(x.buffer()), args); },
              ErrorKind::internal, "sgd_update: state1 is left out");
  check_error([&] { gpu_kernels().adamw_update(gpu_stream(), slot(x.buffer()), {}); },
              ErrorKind::internal, "adamw_update: state1 is left out");
  check_error([&] { gpu_kernels().sgd_update(gpu_stream(), slot(half.buffer()), {}); },
              ErrorKind::usage,
              "sgd_update: dtype bf16 is not supported on GPUs, expected f32 or f64");
  check_error([&] { gpu_kernels().sum_of_squares(gpu_stream(), {x.buffer()}, {}, x.buffer()); },
              ErrorKind::internal, "sum_of_squares: 1 buffers and 0 counts");
}

}  // namespace convoy::testing
