// Pooling on emulated GPUs, beside what all backends are held to: vectors of bf16, more images than
// a grid holds in one direction, and the launch configuration.
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cuda/layout.h"
#include "kernels/cuda/pool2d_kernels.h"
#include "tests/kernels/cuda/device_array.h"
#include "tests/kernels/cuda/figures.h"

namespace convoy::testing {
namespace {

using CONVOY_GPU::dim3;
using CONVOY_GPU::kChannelsLast;
using CONVOY_GPU::pool_grid;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

// Eight channels of 1x4 places, windows of three with padding 1 and stride 3: [pad 0 1] and [2 3
// pad].
const Pool2dShape kShape{1, 8, 1, 4, 1, 3, 1, 3, 0, 1};

template <class T>
std::vector<T> channels_last(const std::vector<std::vector<double>>& channels) {
  std::vector<T> values;
  for (std::size_t place = 0; place < channels[0].size(); ++place) {
    for (const std::vector<double>& channel : channels) values.push_back(as<T>(channel[place]));
  }
  return values;
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
void check_lanes() {
  const std::vector<std::vector<double>> x = {{1, 2, 3, 4},
                                              {2, 1, 4, 3},
                                              {-1, -1, -2, -2},
                                              {kNan, 5, 5, kNan},
                                              {5, kNan, kNan, kNan},
                                              {-kInfinity, -kInfinity, -kInfinity, 7},
                                              {kInfinity, 1, 0, -0.0},
                                              {0, 0, 0, 0}};
  const DeviceArray<T> in(channels_last<T>(x)), y(2 * 8), dx(4 * 8);
  const DeviceArray<T> dy(channels_last<T>({8, {10, 20}}));
  const DeviceArray<std::uint8_t> index(2 * 8);
  gpu_kernels().max_pool2d_forward(gpu_stream(), kShape, in.buffer(kChannelsLast),
                                   y.buffer(kChannelsLast), index.buffer(kChannelsLast));
  gpu_kernels().max_pool2d_backward(gpu_stream(), kShape, dy.buffer(kChannelsLast),
                                    index.buffer(kChannelsLast), dx.buffer(kChannelsLast));
  CHECK(index.values() == channels_last<std::uint8_t>(
                              {{2, 1}, {1, 0}, {1, 0}, {1, 1}, {2, 0}, {1, 1}, {1, 0}, {1, 0}}));
  CHECK(same(y.values(), channels_last<T>({{2, 4},
                                           {2, 4},
                                           {-1, -2},
                                           {kNan, kNan},
                                           {kNan, kNan},
                                           {-kInfinity, 7},
                                           {kInfinity, 0},
                                           {0, 0}})));
  CHECK(dx.values() == channels_last<T>({{0, 10, 0, 20},
                                         {10, 0, 20, 0},
                                         {10, 0, 20, 0},
                                         {10, 0, 0, 20},
                                         {0, 10, 20, 0},
                                         {10, 0, 0, 20},
                                         {10, 0, 20, 0},
                                         {10, 0, 20, 0}}));
}

}  // namespace

TEST_CASE("gpu max_pool2d: each lane of a vector has its own maximum") {
  check_lanes<Bf16>();
  check_lanes<float>();
}

TEST_CASE("gpu pooling: more images than a grid has blocks in one direction") {
  const std::int64_t images = 65536 + 3;
  const Pool2dShape shape{images, 1, 1, 1, 1, 1, 1, 1};
  const std::vector<float> values = counting<float>(images, 1000);
  const DeviceArray<float> x(values), y(images);
  gpu_kernels().avg_pool2d_forward(gpu_stream(), shape, x.buffer(), y.buffer());
  CHECK(y.values() == values);
}

// In programs that are built with the checks.
TEST_CASE("gpu pooling: sectors are used in full") {
  if (!emulator::has_kernel_figures()) return;
  const Pool2dShape shape{2, 64, 12, 12, 3, 3, 2, 2, 1, 1};
  const DeviceArray<Bf16> x(counting<Bf16>(shape.x().count())), y(shape.y().count());
  const DeviceArray<std::uint8_t> index(shape.y().count());
  emulator::start_kernel_figures();
  gpu_kernels().max_pool2d_forward(gpu_stream(), shape, x.buffer(kChannelsLast),
                                   y.buffer(kChannelsLast), index.buffer(kChannelsLast));
  gpu_kernels().max_pool2d_backward(gpu_stream(), shape, y.buffer(kChannelsLast),
                                    index.buffer(kChannelsLast), x.buffer(kChannelsLast));
  gpu_kernels().avg_pool2d_forward(gpu_stream(), shape, x.buffer(kChannelsLast),
                                   y.buffer(kChannelsLast));
  gpu_kernels().avg_pool2d_backward(gpu_stream(), shape, y.buffer(kChannelsLast),
                                    x.buffer(kChannelsLast));
  gpu_stream().synchronize();
  for (const emulator::KernelFigures& kernel : emulator::take_kernel_figures()) {
    check_figures(kernel);
  }
}

TEST_CASE("gpu pooling: grids") {
  // The stem's 112x112x64 to 56x56x64 in bf16, at 256 images.
  CHECK(pool_grid(56 * 56, 64, 8, 256) == dim3(98, 256, 1));
  CHECK(pool_grid(49, 3, 1, 2) == dim3(1, 2, 1));
  CHECK(pool_grid(1, 257, 1, 65535) == dim3(2, 65535, 1));
  CHECK(pool_grid(1, 1, 1, 65536) == dim3(1, 65535, 2));
}

}  // namespace convoy::testing
