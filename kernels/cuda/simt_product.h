// Launching products of simt_tile.h. A product is a struct with
//     int columns() const;
//     template <int kSize> void run(SimtTile<kSize>::Storage&, int first_row, int first_column);
// whose run() computes one tile; blockIdx.z names the part (parity class, piece of depth).
#pragma once

#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/simt_loaders.h"
#include "kernels/cuda/simt_plan.h"

namespace convoy::CONVOY_GPU {

/// Tiles of one row of tiles are neighbours: they share what they read of the larger operand.
template <int kSize, class Product>
__global__ void __launch_bounds__(SimtTile<kSize>::kThreads, SimtTile<kSize>::kBlocks)
    simt_kernel(const Product product) {
  auto& shared = smem<typename SimtTile<kSize>::Storage>();
  const int tile = static_cast<int>(blockIdx.x), per_row = tiles_of(product.columns(), kSize);
  product.template run<kSize>(shared, tile / per_row * kSize, tile % per_row * kSize);
}

template <int kSize, class Product>
void launch_simt(Stream& stream, const Product& product, int rows, int parts) {
  const auto tiles =
      static_cast<unsigned>(tiles_of(rows, kSize)) * tiles_of(product.columns(), kSize);
  const LaunchConfig config = {.grid = dim3(tiles, 1, static_cast<unsigned>(parts)),
                               .block = dim3(SimtTile<kSize>::kThreads),
                               .shared_bytes = sizeof(typename SimtTile<kSize>::Storage),
                               .stream = handle(stream)};
  launch(simt_kernel<kSize, Product>, config, product);
}

/// Queues `parts` products of `rows` rows (or fewer).
template <class Product>
void launch_simt(Stream& stream, const Product& product, int rows, int parts, SimtTileSize tile) {
  if (tile == SimtTileSize::large) {
    launch_simt<128>(stream, product, rows, parts);
  } else {
    launch_simt<64>(stream, product, rows, parts);
  }
}

/// Where the pieces of a split weight gradient go: to dw itself if there is one piece only.
inline float* pieces_of(Stream& stream, const DepthSplit& split, std::int64_t values, float* dw) {
  if (split.count == 1) return dw;
  return static_cast<float*>(stream.scratch(split.count * values * sizeof(float)));
}

}  // namespace convoy::CONVOY_GPU
