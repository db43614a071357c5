#include "kernels/cuda/simt_plan.h"

namespace convoy::CONVOY_GPU {
namespace {

std::int64_t tiles(std::int64_t rows, std::int64_t columns, SimtTileSize tile) {
  const auto size = static_cast<std::int64_t>(tile);
  return (rows + size - 1) / size * ((columns + size - 1) / size);
}

}  // namespace

SimtTileSize simt_tile(std::int64_t rows, std::int64_t columns, std::int64_t parts,
                       SimtTileSize asked) {
  if (asked != SimtTileSize::chosen) return asked;
  // Large tiles are for products that have enough of them for every multiprocessor of a large GPU.
  constexpr std::int64_t kEnough = 128;
  const bool narrow = rows <= 64 || columns <= 64;
  const bool few = tiles(rows, columns, SimtTileSize::large) * parts < kEnough;
  return narrow || few ? SimtTileSize::small : SimtTileSize::large;
}

WeightGradientPlan simt_weight_gradient_plan(std::int64_t rows, std::int64_t columns,
                                             std::int64_t depth, SimtTileSize asked) {
  auto split = [=](SimtTileSize tile) {
    const int size = static_cast<int>(tile);
    return split_depth(rows, columns, depth, size, size);
  };
  const SimtTileSize tile = simt_tile(rows, columns, split(SimtTileSize::large).count, asked);
  return {tile, split(tile)};
}

bool are_float_vectors(std::initializer_list<ConstBuffer> buffers) {
  for (const ConstBuffer& buffer : buffers) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(buffer.data) % 16 == 0;
    if (buffer && (buffer.dtype != DType::f32 || !aligned)) return false;
  }
  return true;
}

}  // namespace convoy::CONVOY_GPU
