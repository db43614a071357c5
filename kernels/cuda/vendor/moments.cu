#include "kernels/cuda/vendor/moments.h"

#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/launch.h"

namespace convoy::cuda::vendor {
namespace {

constexpr int kThreads = 128;

struct Moments {
  const void *mean, *m2;
  bool wide;  // f64
  double count;
  const double* device_count;
};

__device__ double value_of(const void* values, bool wide, std::int64_t i) {
  return wide ? static_cast<const double*>(values)[i] : static_cast<const float*>(values)[i];
}

__global__ void moments_to_cudnn_kernel(Moments from, std::int64_t channels, double epsilon,
                                        CudnnMoments to) {
  const std::int64_t i = std::int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= channels) return;
  const double count = from.device_count ? *from.device_count : from.count;
  const double variance = value_of(from.m2, from.wide, i) / count;
  if (to.mean) to.mean[i] = static_cast<float>(value_of(from.mean, from.wide, i));
  if (to.variance) to.variance[i] = static_cast<float>(variance);
  if (to.inverse_deviation) {
    to.inverse_deviation[i] = static_cast<float>(1 / sqrt(variance + epsilon));
  }
}

__global__ void moments_from_cudnn_kernel(const float* mean, const float* unbiased, double count,
                                          std::int64_t channels, double* to_mean, double* to_m2) {
  const std::int64_t i = std::int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= channels) return;
  to_mean[i] = mean[i];
  to_m2[i] = unbiased[i] * (count - 1);
}

LaunchConfig config(Stream& stream, std::int64_t channels) {
  return {.grid = {static_cast<unsigned>((channels + kThreads - 1) / kThreads)},
          .block = {kThreads},
          .stream = handle(stream)};
}

}  // namespace

void moments_to_cudnn(Stream& stream, std::int64_t channels, const BatchNormStatistics& statistics,
                      double epsilon, const CudnnMoments& to) {
  const Moments from{statistics.mean.data, statistics.m2.data, statistics.mean.dtype == DType::f64,
                     statistics.count, statistics.device_count.as<double>()};
  launch(moments_to_cudnn_kernel, config(stream, channels), from, channels, epsilon, to);
}

void moments_from_cudnn(Stream& stream, std::int64_t channels, double count, const float* mean,
                        const float* unbiased, double* to_mean, double* to_m2) {
  launch(moments_from_cudnn_kernel, config(stream, channels), mean, unbiased, count, channels,
         to_mean, to_m2);
}

}  // namespace convoy::cuda::vendor
