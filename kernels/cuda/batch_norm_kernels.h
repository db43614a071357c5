// What batch_norm.cpp, which checks operands, hands to the kernels: plain structs that launches
// copy.
#pragma once

#include "kernels/cuda/activations.h"
#include "kernels/cuda/batch_norm_grid.h"
#include "kernels/cuda/gpu_stream.h"

namespace convoy::CONVOY_GPU {

/// Activations as positions x channels. With width > 1 all lie channels last: a position is a row.
struct BatchNormProblem {
  DType dtype;
  int width;               ///< channels of one thread
  std::int64_t positions;  ///< n * spatial
  std::int64_t spatial, channels;
  BatchNormGrid grid;
};

/// Statistics as kernels see them.
struct StatisticsIn {
  FloatOrDouble mean, m2;
  const double* device_count = nullptr;
  double count = 1;
  __device__ __forceinline__ double counted() const { return device_count ? *device_count : count; }
};

/// Two doubles per slot and channel.
struct SlotsOut {
  SlotLayout layout;
  double *first, *second;
};

/// The activations of one call; those left out are null. With relu backward knows from y or from
/// the mask what the ReLU let pass.
struct BatchNormIn {
  ActivationIn x, y, dy, residual;
  bool relu = false;
  const std::uint8_t* mask = nullptr;
};

/// Channels that share a byte of the ReLU's mask, a bit each from the lowest: those of a vector.
/// The bytes lie as the vectors of an activation that is channels last.
template <class T>
inline constexpr int kMaskChannels = 16 / sizeof(T);

/// What backward sums of a channel become.
struct BackwardSums {
  StatisticsIn statistics;
  double epsilon;
  bool centred_in_float;  ///< the kernel took x - (float)mean
};

/// Mean and sum of squared deviations of each slot, and their merge in slot order to (channels)
/// f64.
void launch_statistics(cudaStream_t stream, const BatchNormProblem& problem, ActivationIn x,
                       SlotsOut slots);
void launch_merge_moments(cudaStream_t stream, const BatchNormProblem& problem, SlotsOut slots,
                          double* mean, double* m2);

/// Sums of dz and dz * (x - mean) of each slot, and of all slots, the second times 1 / deviation.
void launch_backward_sums(cudaStream_t stream, const BatchNormProblem& problem,
                          const BatchNormIn& in, const FloatOrDouble& mean, SlotsOut slots);
void launch_add_sums(cudaStream_t stream, const BatchNormProblem& problem, SlotsOut slots,
                     const BackwardSums& sums, double* sum_dz, double* sum_dz_xhat);

/// Parameters and sums of the passes that write activations.
struct BatchNormFactors {
  StatisticsIn statistics;
  double epsilon;
  FloatOrDouble gamma, beta;
  const double* sum_dz = nullptr;  ///< null: frozen
  const double* sum_dz_xhat = nullptr;
};

void launch_apply(cudaStream_t stream, const BatchNormProblem& problem, const BatchNormIn& in,
                  const BatchNormFactors& factors, ActivationOut y, std::uint8_t* mask);
void launch_backward_apply(cudaStream_t stream, const BatchNormProblem& problem,
                           const BatchNormIn& in, const BatchNormFactors& factors, ActivationOut dx,
                           ActivationOut dresidual);

/// Adds `parts` packed statistics to `total` in order; a total of one value is reported.
void launch_merge_packed(cudaStream_t stream, std::int64_t channels, std::int64_t parts,
                         const double* from, double* total, DeviceFailure* failure);

/// Moves running statistics, f32 or f64, towards the batch's.
void launch_update_running(cudaStream_t stream, std::int64_t channels, const StatisticsIn& batch,
                           double momentum, Buffer running_mean, Buffer running_var);

}  // namespace convoy::CONVOY_GPU
