// Adding the pieces of a sum that several blocks made.
#pragma once

#include <cstdint>

#include "kernels/base/stream.h"
#include "kernels/cuda/conv2d_problem.h"
#include "kernels/cuda/platform.h"

namespace convoy::CONVOY_GPU {

/// sum[i] = pieces[0][i] + pieces[1][i] + ..., in this order; `values` is a multiple of 4 and both
/// pointers are aligned to 16 bytes. Of padded filter rows the taps alone come to `sum`.
void sum_pieces(Stream& stream, int count, std::int64_t values, const float* pieces, float* sum,
                const FilterRows& rows = {});

}  // namespace convoy::CONVOY_GPU
