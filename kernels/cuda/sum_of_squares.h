// Squared norms of many buffers, for clipping and for LARS.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/buffer.h"
#include "kernels/base/stream.h"
#include "kernels/cuda/platform.h"

namespace convoy::CONVOY_GPU {

/// f64 of device memory that queue_sum_of_squares() needs for buffers of `counts` values.
std::int64_t squares_workspace(const std::vector<std::int64_t>& counts);

/// result[i] = sum of squares of x[i], in a fixed order. Buffers are f32, f64 or bf16.
void queue_sum_of_squares(Stream& stream, const std::vector<ConstBuffer>& x,
                          const std::vector<std::int64_t>& counts, double* result,
                          double* workspace);

}  // namespace convoy::CONVOY_GPU
