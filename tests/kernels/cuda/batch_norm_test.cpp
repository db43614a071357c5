// Batch norm on emulated GPUs, beside what all backends are held to: statistics at the border of
// float, the compact mask of the ReLU, layouts that differ, and the launch configuration.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cuda/batch_norm_grid.h"
#include "kernels/cuda/layout.h"
#include "tests/kernels/cuda/device_array.h"
#include "tests/kernels/cuda/figures.h"
#include "tests/support/expect_error.h"
#include "tests/support/formula.h"

namespace convoy::testing {
namespace {

using CONVOY_GPU::batch_norm_grid;
using CONVOY_GPU::BatchNormGrid;
using CONVOY_GPU::kChannelsLast;

template <class T>
std::vector<T> typed(const std::vector<double>& values) {
  std::vector<T> result;
  for (double value : values) result.push_back(as<T>(value));
  return result;
}

// Mean and m2 of each channel of `x`, positions x channels.
struct Statistics {
  std::vector<double> mean, m2;
};

template <class T>
Statistics measured(const std::vector<T>& x, std::int64_t channels, LayoutId layout) {
  const DeviceArray<T> input(x);
  const DeviceArray<double> mean(channels), m2(channels);
  gpu_kernels().batch_norm_statistics(gpu_stream(), {1, channels, std::ssize(x) / channels},
                                      input.buffer(layout), mean.buffer(), m2.buffer());
  return {mean.values(), m2.values()};
}

// The same by two passes in long double.
template <class T>
Statistics expected_statistics(const std::vector<T>& x, std::int64_t channels) {
  const std::int64_t positions = std::ssize(x) / channels;
  Statistics result;
  for (std::int64_t c = 0; c < channels; ++c) {
    long double sum = 0, squares = 0;
    for (std::int64_t p = 0; p < positions; ++p) sum += number(x[p * channels + c]);
    const long double mean = sum / positions;
    for (std::int64_t p = 0; p < positions; ++p) {
      const long double d = number(x[p * channels + c]) - mean;
      squares += d * d;
    }
    result.mean.push_back(double(mean));
    result.m2.push_back(double(squares));
  }
  return result;
}

// Largest errors over channels: of the mean in deviations, of m2 in itself.
struct Errors {
  double mean = 0, m2 = 0;
};

template <class T>
Errors statistics_errors(const std::vector<T>& x, std::int64_t channels) {
  const Statistics actual = measured(x, channels, kChannelsLast);
  const Statistics expected = expected_statistics(x, channels);
  const std::int64_t positions = std::ssize(x) / channels;
  Errors errors;
  for (std::int64_t c = 0; c < channels; ++c) {
    const double deviation = std::sqrt(expected.m2[c] / double(positions));
    errors.mean = std::max(errors.mean, std::abs(actual.mean[c] - expected.mean[c]) / deviation);
    errors.m2 = std::max(errors.m2, std::abs(actual.m2[c] / expected.m2[c] - 1));
  }
  return errors;
}

template <class T>
void check_far_from_zero(std::int64_t channels, double mean, double deviation, double outlier) {
  INFO(name(dtype_of<T>) << ", " << channels << " channels, mean " << mean << ", outlier "
                         << outlier);
  std::vector<double> x = signed_values("far", 9973 * channels);
  for (double& value : x) value = mean + deviation * value;
  for (std::int64_t c = 0; c < channels; ++c) x[c] += outlier;
  const Errors errors = statistics_errors(typed<T>(x), channels);
  CHECK(errors.mean < 1e-5);
  CHECK(errors.m2 < 1e-4);
}

// One batch norm with ReLU and residual, forward and backward, on given layouts.
template <class T>
struct Run {
  BatchNormShape shape;
  LayoutId layout = kChannelsLast, dy_layout = kChannelsLast;
  bool with_mask = false;

  std::int64_t count() const { return shape.x().count(); }
  std::vector<T> x() const {
    std::vector<T> values = typed<T>(signed_values("x", count()));
    values[1] = as<T>(std::numeric_limits<double>::quiet_NaN());
    return values;
  }
  // dy is given channels last, and stored as dy_layout says.
  std::vector<T> dy() const {
    std::vector<T> values = typed<T>(signed_values("dy", count()));
    if (dy_layout == kChannelsLast) return values;
    std::vector<T> plain(values.size());
    for (std::int64_t n = 0; n < shape.n; ++n) {
      for (std::int64_t s = 0; s < shape.spatial; ++s) {
        for (std::int64_t c = 0; c < shape.c; ++c) {
          plain[(n * shape.c + c) * shape.spatial + s] =
              values[(n * shape.spatial + s) * shape.c + c];
        }
      }
    }
    return plain;
  }

  struct Result {
    std::vector<T> y, dx, dresidual;
    std::vector<std::uint8_t> mask;
    std::vector<double> sum_dz, sum_dz_xhat;
  };
  Result operator()() const {
    const std::int64_t c = shape.c;
    const double values = double(shape.n * shape.spatial);
    const DeviceArray<T> in(x()), residual(typed<T>(signed_values("r", count()))), gradient(dy());
    const DeviceArray<float> gamma(typed<float>(uniform("gamma", c)));
    const DeviceArray<float> beta(typed<float>(signed_values("beta", c)));
    const DeviceArray<double> mean(signed_values("mean", c)), m2(std::vector<double>(c, values));
    const DeviceArray<double> sum_dz(c), sum_dz_xhat(c);
    const DeviceArray<T> y(count()), dx(count()), dresidual(count());
    const DeviceArray<std::uint8_t> mask(
        std::int64_t(gpu_kernels().batch_norm_mask_bytes(shape, layout, dtype_of<T>)));
    const BatchNormStatistics statistics{mean.buffer(), m2.buffer(), values};
    const Buffer bits = with_mask ? mask.buffer() : Buffer{};
    const ConstBuffer read_y = with_mask ? Buffer{} : y.buffer(layout);
    gpu_kernels().batch_norm_apply(gpu_stream(), shape, in.buffer(layout), statistics, 1e-5,
                                   gamma.buffer(), beta.buffer(), residual.buffer(layout), true,
                                   y.buffer(layout), bits);
    gpu_kernels().batch_norm_backward_reduce(gpu_stream(), shape, in.buffer(layout), read_y, bits,
                                             gradient.buffer(dy_layout), statistics, 1e-5, true,
                                             sum_dz.buffer(), sum_dz_xhat.buffer());
    gpu_kernels().batch_norm_backward_apply(gpu_stream(), shape, in.buffer(layout), read_y, bits,
                                            gradient.buffer(dy_layout), statistics, 1e-5, true,
                                            gamma.buffer(), sum_dz.buffer(), sum_dz_xhat.buffer(),
                                            dx.buffer(layout), dresidual.buffer(layout));
    return {y.values(),    dx.values(),     dresidual.values(),
            mask.values(), sum_dz.values(), sum_dz_xhat.values()};
  }
};

// Bit for bit, so that NaN equals itself.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class Result>
void check_same(const Result& a, const Result& b) {
  CHECK(same_bits(a.y, b.y));
  CHECK(same_bits(a.dx, b.dx));
  CHECK(same_bits(a.dresidual, b.dresidual));
}

// Bits of a mask of `per_byte` channels a byte, from y.
template <class T>
std::vector<std::uint8_t> bits_of(const std::vector<T>& y, int per_byte) {
  std::vector<std::uint8_t> bits(y.size() / per_byte);
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!(number(y[i]) <= 0)) bits[i / per_byte] |= std::uint8_t(1 << i % per_byte);
  }
  return bits;
}

template <class T>
void check_mask(const BatchNormShape& shape, int per_byte) {
  INFO(name(dtype_of<T>) << ", " << shape.c << " channels");
  const auto with_y = Run<T>{shape}();
  const auto with_mask = Run<T>{.shape = shape, .with_mask = true}();
  CHECK(with_mask.mask == bits_of(with_y.y, per_byte));
  check_same(with_y, with_mask);
  CHECK(same_bits(with_y.sum_dz, with_mask.sum_dz));
  CHECK(same_bits(with_y.sum_dz_xhat, with_mask.sum_dz_xhat));
  // A gradient that comes plain takes another path, with sums in another order.
  const auto plain = Run<T>{.shape = shape, .dy_layout = kPlain, .with_mask = true}();
  CHECK(same_bits(plain.dresidual, with_y.dresidual));
  for (std::int64_t c = 0; c < shape.c; ++c) {
    CHECK(std::abs(plain.sum_dz[c] - with_y.sum_dz[c]) < 1e-5);
  }
}

std::int64_t covered(const BatchNormGrid& grid) {
  return grid.positions * grid.blocks_y;
}

// All kernels of one layer, forward and backward.
template <class T>
void run_all(const BatchNormShape& shape) {
  measured(typed<T>(signed_values("x", shape.x().count())), shape.c, kChannelsLast);
  Run<T>{.shape = shape, .with_mask = true}();
}

}  // namespace

// In programs that are built with the checks.
TEST_CASE("gpu batch norm: no bank conflicts, sectors are used in full") {
  if (!emulator::has_kernel_figures()) return;
  emulator::start_kernel_figures();
  run_all<Bf16>({2, 64, 200});
  run_all<float>({2, 256, 60});
  for (const emulator::KernelFigures& kernel : emulator::take_kernel_figures()) {
    check_figures(kernel);
  }
}

TEST_CASE("gpu batch norm: statistics of channels far from zero, and around outliers") {
  // bf16 values of 512 lie 4 apart; float's around 1e4 a thousandth.
  check_far_from_zero<Bf16>(64, 500, 12, 0);
  check_far_from_zero<Bf16>(64, 0, 1, 1e4);
  check_far_from_zero<Bf16>(5, 500, 12, 1e4);
  check_far_from_zero<float>(64, 1e4, 0.1, 0);
  check_far_from_zero<float>(6, 1e4, 0.1, 1e4);
}

TEST_CASE("gpu batch norm: statistics of integers are exact") {
  for (std::int64_t channels : {16, 3}) {
    const std::vector<double> x = integers("integers", 8192 * channels, 2);
    const Statistics expected = expected_statistics(x, channels);
    const Statistics in_bf16 = measured(typed<Bf16>(x), channels, kChannelsLast);
    const Statistics in_float = measured(typed<float>(x), channels, kChannelsLast);
    for (const Statistics& actual : {in_bf16, in_float}) {
      CHECK(actual.mean == expected.mean);
      CHECK(actual.m2 == expected.m2);
    }
  }
}

TEST_CASE("gpu batch norm: one position has no deviation, equal ones neither") {
  for (std::int64_t positions : {1, 300}) {
    const Statistics actual =
        measured(std::vector<Bf16>(8 * positions, as<Bf16>(3)), 8, kChannelsLast);
    CHECK(actual.mean == std::vector<double>(8, 3));
    CHECK(actual.m2 == std::vector<double>(8, 0));
  }
}

TEST_CASE("gpu batch norm: backward reads a mask as it reads y") {
  check_mask<Bf16>({2, 24, 50}, 8);
  check_mask<float>({3, 12, 70}, 4);
}

TEST_CASE("gpu batch norm: which activations keep a mask") {
  auto bytes = [](std::int64_t channels, LayoutId layout, DType dtype) {
    return gpu_kernels().batch_norm_mask_bytes({2, channels, 9}, layout, dtype);
  };
  CHECK(bytes(64, kChannelsLast, DType::bf16) == 2 * 9 * 8);
  CHECK(bytes(64, kChannelsLast, DType::f32) == 2 * 9 * 16);
  CHECK(bytes(12, kChannelsLast, DType::bf16) == 0);
  CHECK(bytes(6, kChannelsLast, DType::f32) == 0);
  CHECK(bytes(64, kChannelsLast, DType::f64) == 0);
  CHECK(bytes(64, kPlain, DType::bf16) == 0);
}

TEST_CASE("gpu batch norm: backward wants y or the mask of its ReLU") {
  const DeviceArray<float> x(4), gamma(4);
  const DeviceArray<double> sums(4);
  const BatchNormStatistics statistics{sums.buffer(), sums.buffer(), 2};
  check_error(
      [&] {
        gpu_kernels().batch_norm_backward_reduce(gpu_stream(), {1, 4, 1}, x.buffer(), {}, {},
                                                 x.buffer(), statistics, 1e-5, true, sums.buffer(),
                                                 sums.buffer());
      },
      ErrorKind::internal,
      "batch_norm_backward_reduce: neither y nor a mask tells the ReLU's gradient");
  const DeviceArray<std::uint8_t> mask(1);
  check_error(
      [&] {
        gpu_kernels().batch_norm_apply(gpu_stream(), {1, 4, 1}, x.buffer(), statistics, 1e-5,
                                       gamma.buffer(), gamma.buffer(), {}, true, x.buffer(),
                                       mask.buffer());
      },
      ErrorKind::internal, "batch_norm_apply: operands that keep no mask of the ReLU");
}

TEST_CASE("gpu batch norm: a total of one value is refused when the stream is waited for") {
  const DeviceArray<double> part(std::vector<double>{3, 0, 1});
  const DeviceArray<double> total(std::vector<double>(3, 0));
  gpu_kernels().batch_norm_merge(gpu_stream(), {1}, 1, part.buffer(), total.buffer());
  check_error([] { gpu_stream().synchronize(); }, ErrorKind::usage,
              "batch_norm: 1 value per channel in training, over all replicas");
  gpu_kernels().batch_norm_merge(gpu_stream(), {1}, 1, part.buffer(), total.buffer());
  CHECK(total.values() == std::vector<double>{3, 0, 2});
}

TEST_CASE("gpu batch norm: grids cover all positions once, with bounded sums") {
  for (std::int64_t positions : {1, 5, 49, 1568, 50176, 256 * 112 * 112, 9000 * 112 * 112}) {
    for (std::int64_t channels : {1, 3, 8, 64, 160, 2048}) {
      for (int width : {1, 8}) {
        INFO(positions << " positions, " << channels << " channels in vectors of " << width);
        if (channels % width != 0) continue;
        const BatchNormGrid grid =
            batch_norm_grid(positions, channels, width, true, CONVOY_GPU::kReductionLength);
        CHECK(grid.columns * grid.rows == CONVOY_GPU::kBatchNormThreads);
        CHECK(grid.blocks_x * grid.columns * width >= channels);
        CHECK(covered(grid) >= positions);
        CHECK(covered(grid) - grid.positions < positions);
        CHECK(grid.blocks_y <= 65535);
        // Threads take at most 64 positions, unless the grid has no more blocks.
        if (grid.blocks_y < 60000) CHECK(grid.positions <= 64 * grid.rows);
      }
    }
  }
}

TEST_CASE("gpu batch norm: grids of known layers") {
  // 56x56x256 at 256 images in bf16: 32 vectors of 8 side by side, 8 rows of 49 positions.
  CHECK(batch_norm_grid(256 * 56 * 56, 256, 8, true, 64) ==
        BatchNormGrid{.columns = 32, .rows = 8, .positions = 392, .blocks_x = 1, .blocks_y = 2048});
  // 7x7x512 at 32 images: few positions, all in a wave.
  CHECK(batch_norm_grid(32 * 49, 512, 8, true, 64) ==
        BatchNormGrid{.columns = 32, .rows = 8, .positions = 32, .blocks_x = 2, .blocks_y = 49});
  // Plain: a channel's positions lie side by side.
  CHECK(batch_norm_grid(2048, 3, 1, false, 64) ==
        BatchNormGrid{.columns = 1, .rows = 256, .positions = 1024, .blocks_x = 3, .blocks_y = 2});
}

}  // namespace convoy::testing
