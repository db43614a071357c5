// Small kernels over statistics themselves: merging packed ones and moving running ones.
#include "kernels/cuda/batch_norm_kernels.h"
#include "kernels/cuda/failure.h"
#include "kernels/cuda/launch.h"

namespace convoy::CONVOY_GPU {
namespace {

constexpr int kThreads = 256;

/// Mean and m2 of one channel, `count` values so far.
struct ChannelMoments {
  double mean = 0, m2 = 0, count = 0;
  __device__ __forceinline__ void add(double part_mean, double part_m2, double part_count) {
    if (part_count == 0) return;
    // With count 0 what mean and m2 hold is nobody's.
    if (count == 0) {
      mean = part_mean, m2 = part_m2, count = part_count;
      return;
    }
    const double all = count + part_count, delta = part_mean - mean;
    mean += delta * (part_count / all);
    m2 += part_m2 + delta * delta * (count * part_count / all);
    count = all;
  }
};

// One block, because every channel reads the count that it replaces.
__global__ void __launch_bounds__(kThreads)
    merge_packed_kernel(std::int64_t channels, std::int64_t parts, const double* from,
                        double* total, DeviceFailure* failure) {
  const std::int64_t values = 2 * channels + 1;
  ChannelMoments sum;
  double all = total[2 * channels];
  for (std::int64_t part = 0; part < parts; ++part) all += from[part * values + 2 * channels];
  for (std::int64_t c = threadIdx.x; c < channels; c += kThreads) {
    sum = {total[c], total[channels + c], total[2 * channels]};
    for (std::int64_t part = 0; part < parts; ++part) {
      const double* packed = from + part * values;
      sum.add(packed[c], packed[channels + c], packed[2 * channels]);
    }
    total[c] = sum.mean;
    total[channels + c] = sum.m2;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  total[2 * channels] = all;
  if (all == 1) report_failure(failure, FailureCode::single_value_batch_norm, 1, 2);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    update_running_kernel(std::int64_t channels, StatisticsIn batch, double momentum,
                          T* running_mean, T* running_var) {
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const double count = batch.counted();
  if (c >= channels || count == 0) return;
  auto moved = [momentum](T running, double value) {
    return static_cast<T>((1 - momentum) * static_cast<double>(running) + momentum * value);
  };
  running_mean[c] = moved(running_mean[c], batch.mean[c]);
  running_var[c] = moved(running_var[c], batch.m2[c] / (count - 1));
}

template <class T>
void update(cudaStream_t stream, std::int64_t channels, const StatisticsIn& batch, double momentum,
            Buffer running_mean, Buffer running_var) {
  const LaunchConfig config{
      .grid = dim3(static_cast<unsigned>((channels + kThreads - 1) / kThreads)),
      .block = dim3(kThreads),
      .stream = stream};
  launch(update_running_kernel<T>, config, channels, batch, momentum, running_mean.as<T>(),
         running_var.as<T>());
}

}  // namespace

void launch_merge_packed(cudaStream_t stream, std::int64_t channels, std::int64_t parts,
                         const double* from, double* total, DeviceFailure* failure) {
  launch(merge_packed_kernel, LaunchConfig{.block = dim3(kThreads), .stream = stream}, channels,
         parts, from, total, failure);
}

void launch_update_running(cudaStream_t stream, std::int64_t channels, const StatisticsIn& batch,
                           double momentum, Buffer running_mean, Buffer running_var) {
  if (running_mean.dtype == DType::f64) {
    update<double>(stream, channels, batch, momentum, running_mean, running_var);
  } else {
    update<float>(stream, channels, batch, momentum, running_mean, running_var);
  }
}

}  // namespace convoy::CONVOY_GPU
