// Between the statistics of the seam (f64; mean and m2) and cuDNN's (f32; mean, variance, 1/std).
#pragma once

#include "kernels/base/stream.h"
#include "kernels/cuda/platform.h"
#include "kernels/shapes.h"

namespace convoy::cuda::vendor {

/// Of `channels` channels; each may be null.
struct CudnnMoments {
  float* mean;
  float* variance;  ///< biased
  float* inverse_deviation;
};

void moments_to_cudnn(Stream& stream, std::int64_t channels, const BatchNormStatistics& statistics,
                      double epsilon, const CudnnMoments& to);

/// From the mean and the unbiased variance of `count` values.
void moments_from_cudnn(Stream& stream, std::int64_t channels, double count, const float* mean,
                        const float* unbiased, double* to_mean, double* to_m2);

}  // namespace convoy::cuda::vendor
