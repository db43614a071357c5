// What cross_entropy.cpp, which checks operands, hands to the kernels of cross_entropy.cu.
#pragma once

#include "kernels/cuda/gpu_stream.h"
#include "kernels/shapes.h"

namespace convoy::CONVOY_GPU {

/// Threads that take one row of logits: two warps for short rows, eight for long ones. Pure.
int cross_entropy_threads(std::int64_t classes);

struct CrossEntropyBuffers {
  ConstBuffer logits;
  const std::int64_t* labels;
  double* losses;  ///< of each row, not scaled
  Buffer dlogits;  ///< may be left out
};

void launch_cross_entropy(cudaStream_t stream, const CrossEntropyShape& shape,
                          const CrossEntropyBuffers& buffers, DeviceFailure* failure);

/// loss (1, f32 or f64) = scale * sum of losses (rows), in a fixed order.
void launch_total_loss(cudaStream_t stream, std::int64_t rows, double scale, const double* losses,
                       Buffer loss);

}  // namespace convoy::CONVOY_GPU
