// Which tile and which split of depth a product of given extents gets. Of the shape alone: another
// choice would give other bits.
#pragma once

#include <cstdint>

#include "kernels/cuda/conv2d_problem.h"
#include "kernels/cuda/simt.h"

namespace convoy::CONVOY_GPU {

/// The tile for `parts` products of rows x columns that run together; `asked` unless that is
/// `chosen`.
SimtTileSize simt_tile(std::int64_t rows, std::int64_t columns, std::int64_t parts,
                       SimtTileSize asked);

struct WeightGradientPlan {
  SimtTileSize tile;
  DepthSplit split;
};
WeightGradientPlan simt_weight_gradient_plan(std::int64_t rows, std::int64_t columns,
                                             std::int64_t depth, SimtTileSize asked);

/// Whether all are vectors: addresses aligned to 16 bytes, f32.
bool are_float_vectors(std::initializer_list<ConstBuffer> buffers);

}  // namespace convoy::CONVOY_GPU
