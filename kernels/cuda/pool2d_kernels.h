// What pool2d.cpp, which checks operands, hands to the kernels of pool2d.cu.
#pragma once

#include "kernels/cuda/activations.h"

namespace convoy::CONVOY_GPU {

/// Images x (c, h, w) and y (c, out_h, out_w), as ints: offsets inside an image fit.
struct PoolGeometry {
  std::int32_t channels, h, w, out_h, out_w;
  std::int32_t kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w;
  bool count_padding;
};

/// One thread writes `width` channels of one place of one image.
struct PoolProblem {
  DType dtype;
  int width;
  bool channels_first;  ///< neighbouring threads write neighbouring channels, not places
  std::int64_t images;
  PoolGeometry geometry;
};

inline constexpr int kPoolThreads = 256;

/// How the `places` x channels of each image are shared out: blocks of threads along grid.x, images
/// along grid.y and, past 65535, in layers of these along grid.z. Pure.
dim3 pool_grid(std::int64_t places, std::int64_t channels, int width, std::int64_t images);

void launch_max_forward(cudaStream_t stream, const PoolProblem& problem, ActivationIn x,
                        ActivationOut y, ActivationOut index);
void launch_max_backward(cudaStream_t stream, const PoolProblem& problem, ActivationIn dy,
                         ActivationIn index, ActivationOut dx);
void launch_avg_forward(cudaStream_t stream, const PoolProblem& problem, ActivationIn x,
                        ActivationOut y);
void launch_avg_backward(cudaStream_t stream, const PoolProblem& problem, ActivationIn dy,
                         ActivationOut dx);

}  // namespace convoy::CONVOY_GPU
