// The passes of batch norm that write activations. A block first works out the factors of its
// channels, one channel a thread, in double; then each thread keeps those of its channel vector in
// registers and walks over positions:
//
//     forward   y  = scale * (x - near) + shift (+ residual) (then ReLU)
//     backward  dx = scale * dz + slope * (x - near) + shift
//
// `near` is the float next to the mean, and what that leaves out is part of the shift: with x -
// mean in one rounding a channel far from zero keeps its digits.
#include <cmath>

#include "kernels/cuda/batch_norm_device.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/shared.h"

namespace convoy::CONVOY_GPU {
namespace {

/// Factors of the block's channels.
template <class Number, int kWidth>
struct FactorStorage {
  BlockChannels<Number, kWidth> near, scale, slope, shift;
};

/// The same of one thread's channels.
template <class Number, int kWidth>
struct ThreadFactors {
  Number near[kWidth], scale[kWidth], slope[kWidth], shift[kWidth];
};

/// mean = near + rest, near a number of Number.
template <class Number>
struct SplitMean {
  __device__ __forceinline__ explicit SplitMean(double mean)
      : near(static_cast<Number>(mean)), rest(mean - static_cast<double>(near)) {}
  Number near;
  double rest;
};

struct ForwardPass {
  template <class Number>
  static __device__ __forceinline__ void factors(const BatchNormFactors& from, std::int64_t c,
                                                 Number& near, Number& scale, Number& slope,
                                                 Number& shift) {
    const SplitMean<Number> mean(from.statistics.mean[c]);
    const double variance = from.statistics.m2[c] / from.statistics.counted();
    const double factor = from.gamma[c] / std::sqrt(variance + from.epsilon);
    near = mean.near;
    scale = static_cast<Number>(factor);
    slope = 0;
    shift = static_cast<Number>(from.beta[c] - mean.rest * factor);
  }
};

struct BackwardPass {
  template <class Number>
  static __device__ __forceinline__ void factors(const BatchNormFactors& from, std::int64_t c,
                                                 Number& near, Number& scale, Number& slope,
                                                 Number& shift) {
    const double count = from.statistics.counted();
    const double rstd = 1 / std::sqrt(from.statistics.m2[c] / count + from.epsilon);
    const double factor = from.gamma[c] * rstd;
    scale = static_cast<Number>(factor);
    near = slope = shift = 0;
    if (!from.sum_dz) return;
    const SplitMean<Number> mean(from.statistics.mean[c]);
    const double tilt = -factor * rstd * from.sum_dz_xhat[c] / count;
    near = mean.near;
    slope = static_cast<Number>(tilt);
    shift = static_cast<Number>(-factor * from.sum_dz[c] / count - tilt * mean.rest);
  }
};

/// Works out the block's factors together. All threads call it.
template <class Pass, class Number, int kWidth>
__device__ __forceinline__ ThreadFactors<Number, kWidth> block_factors(
    const BatchNormTile& tile, const BatchNormFactors& from, const ThreadPlace<kWidth>& place) {
  auto& storage = smem<FactorStorage<Number, kWidth>>();
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t channel = channel_of_thread<kWidth>(tile);
  if (channel >= 0) {
    Pass::template factors<Number>(from, channel, storage.near.at(thread), storage.scale.at(thread),
                                   storage.slope.at(thread), storage.shift.at(thread));
  }
  __syncthreads();
  ThreadFactors<Number, kWidth> own = {};
  if (place.channel >= tile.channels) return own;
  CONVOY_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    own.near[i] = storage.near.of[i][place.column];
    own.scale[i] = storage.scale.of[i][place.column];
    own.slope[i] = storage.slope.of[i][place.column];
    own.shift[i] = storage.shift.of[i][place.column];
  }
  return own;
}

template <class T, int kWidth>
__device__ __forceinline__ Vector<T, kWidth> load_given(const BatchNormTile& tile,
                                                        const ActivationIn& in,
                                                        std::int64_t position,
                                                        std::int64_t channel) {
  if (in.data) return load_at<T, kWidth>(tile, in, position, channel);
  return {};
}

template <class T, int kWidth>
__device__ __forceinline__ Vector<T, kWidth> forward_value(const ThreadFactors<Math<T>, kWidth>& f,
                                                           const BatchNormIn& in,
                                                           const Vector<T, kWidth>& x,
                                                           const Vector<T, kWidth>& residual) {
  Vector<T, kWidth> y;
  CONVOY_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    Math<T> value = f.scale[i] * (to_math(x[i]) - f.near[i]) + f.shift[i];
    if (in.residual.data) value += to_math(residual[i]);
    y[i] = static_cast<T>(in.relu && value < 0 ? Math<T>(0) : value);
  }
  return y;
}

template <class T, int kWidth>
__device__ __forceinline__ void store_forward(const BatchNormTile& tile, const ActivationOut& y,
                                              std::uint8_t* mask, std::int64_t position,
                                              std::int64_t channel,
                                              const Vector<T, kWidth>& values) {
  store_at<T, kWidth>(tile, y, position, channel, values);
  if constexpr (kWidth == kMaskChannels<T>) {
    if (!mask) return;
    const std::int64_t vector = (position * tile.channels + channel) / kWidth;
    mask[vector] = static_cast<std::uint8_t>(passing<T, kWidth>(values));
  }
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kBatchNormThreads)
    batch_norm_apply_kernel(BatchNormTile tile, BatchNormIn in, BatchNormFactors from,
                            ActivationOut y, std::uint8_t* mask) {
  constexpr int kAtOnce = 4;
  const ThreadPlace<kWidth> place(tile);
  const auto factors = block_factors<ForwardPass, Math<T>, kWidth>(tile, from, place);
  const std::int64_t step = tile.rows;
  std::int64_t at = place.begin;
  for (; at + (kAtOnce - 1) * step < place.end; at += kAtOnce * step) {
    Vector<T, kWidth> x[kAtOnce], residual[kAtOnce];
    CONVOY_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      x[k] = load_at<T, kWidth>(tile, in.x, at + k * step, place.channel);
      residual[k] = load_given<T, kWidth>(tile, in.residual, at + k * step, place.channel);
    }
    CONVOY_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      store_forward(tile, y, mask, at + k * step, place.channel,
                    forward_value<T, kWidth>(factors, in, x[k], residual[k]));
    }
  }
  for (; at < place.end; at += step) {
    const auto x = load_at<T, kWidth>(tile, in.x, at, place.channel);
    const auto residual = load_given<T, kWidth>(tile, in.residual, at, place.channel);
    store_forward(tile, y, mask, at, place.channel,
                  forward_value<T, kWidth>(factors, in, x, residual));
  }
}

/// dz rounded as it is stored for the residual; dx from dz as it is.
template <class T, int kWidth>
struct BackwardValues {
  Vector<T, kWidth> dx, dz;
};

template <class T, int kWidth>
__device__ __forceinline__ BackwardValues<T, kWidth> backward_values(
    const ThreadFactors<Math<T>, kWidth>& f, const Vector<T, kWidth>& x, unsigned passing,
    const Vector<T, kWidth>& dy) {
  BackwardValues<T, kWidth> result;
  CONVOY_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    const Math<T> dz = before_relu(passing, dy, i);
    const Math<T> level = f.slope[i] * (to_math(x[i]) - f.near[i]) + f.shift[i];
    result.dz[i] = static_cast<T>(dz);
    result.dx[i] = static_cast<T>(f.scale[i] * dz + level);
  }
  return result;
}

template <class T, int kWidth>
__device__ __forceinline__ void store_backward(const BatchNormTile& tile, const ActivationOut& dx,
                                               const ActivationOut& dresidual,
                                               std::int64_t position, std::int64_t channel,
                                               const BackwardValues<T, kWidth>& values) {
  store_at<T, kWidth>(tile, dx, position, channel, values.dx);
  if (dresidual.data) store_at<T, kWidth>(tile, dresidual, position, channel, values.dz);
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kBatchNormThreads)
    batch_norm_backward_apply_kernel(BatchNormTile tile, BatchNormIn in, BatchNormFactors from,
                                     ActivationOut dx, ActivationOut dresidual) {
  constexpr int kAtOnce = 2;
  const ThreadPlace<kWidth> place(tile);
  const auto factors = block_factors<BackwardPass, Math<T>, kWidth>(tile, from, place);
  const std::int64_t step = tile.rows;
  std::int64_t at = place.begin;
  for (; at + (kAtOnce - 1) * step < place.end; at += kAtOnce * step) {
    Vector<T, kWidth> x[kAtOnce], dy[kAtOnce];
    unsigned passing[kAtOnce];
    CONVOY_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      dy[k] = load_at<T, kWidth>(tile, in.dy, at + k * step, place.channel);
      x[k] = load_given<T, kWidth>(tile, in.x, at + k * step, place.channel);
      passing[k] = load_passing<T, kWidth>(tile, in, at + k * step, place.channel);
    }
    CONVOY_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      store_backward(tile, dx, dresidual, at + k * step, place.channel,
                     backward_values<T, kWidth>(factors, x[k], passing[k], dy[k]));
    }
  }
  for (; at < place.end; at += step) {
    const auto dy = load_at<T, kWidth>(tile, in.dy, at, place.channel);
    const auto x = load_given<T, kWidth>(tile, in.x, at, place.channel);
    const unsigned passing = load_passing<T, kWidth>(tile, in, at, place.channel);
    store_backward(tile, dx, dresidual, at, place.channel,
                   backward_values<T, kWidth>(factors, x, passing, dy));
  }
}

template <class T, int kWidth>
LaunchConfig tiled(cudaStream_t stream, const BatchNormProblem& problem) {
  return {.grid = problem.grid.grid(),
          .block = dim3(kBatchNormThreads),
          .shared_bytes = sizeof(FactorStorage<Math<T>, kWidth>),
          .stream = stream};
}

}  // namespace

void launch_apply(cudaStream_t stream, const BatchNormProblem& problem, const BatchNormIn& in,
                  const BatchNormFactors& factors, ActivationOut y, std::uint8_t* mask) {
  with_width(problem.dtype, problem.width, [&]<class T, int kWidth>() {
    launch(batch_norm_apply_kernel<T, kWidth>, tiled<T, kWidth>(stream, problem), tile_of(problem),
           in, factors, y, mask);
  });
}

void launch_backward_apply(cudaStream_t stream, const BatchNormProblem& problem,
                           const BatchNormIn& in, const BatchNormFactors& factors, ActivationOut dx,
                           ActivationOut dresidual) {
  with_width(problem.dtype, problem.width, [&]<class T, int kWidth>() {
    launch(batch_norm_backward_apply_kernel<T, kWidth>, tiled<T, kWidth>(stream, problem),
           tile_of(problem), in, factors, dx, dresidual);
  });
}

}  // namespace convoy::CONVOY_GPU
