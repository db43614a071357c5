// The main loop of fp32 products on CUDA cores: a block makes a square tile of y = a b, eight steps
// of depth at a time, from two buffers of shared memory in turn; while one is multiplied, values
// for the other are on their way in registers. Operands come through loaders (simt_loaders.h).
//
//     shared a[depth][row], b[depth][column]; a warp has a tile of kWarpRows x 32:
//     lanes 8 x 4, each with fragments of 4 rows (32 apart) and of 4 columns (16 apart)
//
// Rows of shared memory are 4 floats longer than a tile: turned stores from two lanes per row, four
// values each, then meet 32 different banks.
#pragma once

#include "kernels/cuda/shared.h"
#include "kernels/cuda/vector.h"

namespace convoy::CONVOY_GPU {

using Float4 = Vector<float, 4>;

inline constexpr int kDepthStep = 8;
inline constexpr int kWarpColumns = 32;

/// Sides and shares of a tile of kSize x kSize.
template <int kSize>
struct SimtTile {
  static_assert(kSize == 64 || kSize == 128);
  static constexpr int kThreads = 2 * kSize;   // one vector of each operand per thread and step
  static constexpr int kBlocks = 256 / kSize;  // that a multiprocessor must have registers for
  static constexpr int kWarpRows = kSize / 2;
  static constexpr int kWarpsPerRow = kSize / kWarpColumns;
  static constexpr int kRowFragments = kWarpRows / 32;
  static constexpr int kColumnFragments = 2;

  struct Storage {
    float a[2][kDepthStep][kSize + 4];
    float b[2][kDepthStep][kSize + 4];
  };
  /// The thread's part of the tile: [row fragment * 4 + i][column fragment * 4 + j].
  using Sums = float[kRowFragments * 4][kColumnFragments * 4];

  /// Where the thread's first row and column lie in the tile.
  static __device__ __forceinline__ int row() {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    return warp / kWarpsPerRow * kWarpRows + lane / 4 * 4;
  }
  static __device__ __forceinline__ int column() {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    return warp % kWarpsPerRow * kWarpColumns + lane % 4 * 4;
  }
};

/// sums += the products of one buffer.
template <int kSize>
__device__ __forceinline__ void multiply_step(const float (&a)[kDepthStep][kSize + 4],
                                              const float (&b)[kDepthStep][kSize + 4],
                                              typename SimtTile<kSize>::Sums& sums) {
  using Tile = SimtTile<kSize>;
  const int row = Tile::row(), column = Tile::column();
  CONVOY_UNROLL
  for (int k = 0; k < kDepthStep; ++k) {
    Float4 rows[Tile::kRowFragments], columns[Tile::kColumnFragments];
    CONVOY_UNROLL
    for (int i = 0; i < Tile::kRowFragments; ++i) rows[i] = load_vector<4>(&a[k][row + i * 32]);
    CONVOY_UNROLL
    for (int j = 0; j < Tile::kColumnFragments; ++j) {
      columns[j] = load_vector<4>(&b[k][column + j * 16]);
    }
    CONVOY_UNROLL
    for (int i = 0; i < Tile::kRowFragments * 4; ++i) {
      CONVOY_UNROLL
      for (int j = 0; j < Tile::kColumnFragments * 4; ++j) {
        sums[i][j] += rows[i / 4][i % 4] * columns[j / 4][j % 4];
      }
    }
  }
}

/// sums += a b over `steps` steps of depth, the same number in all threads of the block.
template <int kSize, class A, class B>
__device__ __forceinline__ void multiply(typename SimtTile<kSize>::Storage& shared, A a, B b,
                                         int steps, typename SimtTile<kSize>::Sums& sums) {
  if (steps > 0) {
    A::store(a.load(), shared.a[0]);
    B::store(b.load(), shared.b[0]);
  }
  __syncthreads();
  for (int step = 0; step < steps; ++step) {
    const int now = step % 2;
    const bool more = step + 1 < steps;
    Float4 next_a = {}, next_b = {};
    if (more) {
      next_a = a.load();
      next_b = b.load();
    }
    multiply_step<kSize>(shared.a[now], shared.b[now], sums);
    if (more) {
      A::store(next_a, shared.a[1 - now]);
      B::store(next_b, shared.b[1 - now]);
    }
    __syncthreads();
  }
}

/// Writes the thread's sums (+ bias, where given) to the rows that `row_of` names (null: none).
template <int kSize, class RowOf>
__device__ __forceinline__ void write_tile(const typename SimtTile<kSize>::Sums& sums,
                                           int first_row, int first_column, int columns,
                                           const float* bias, RowOf row_of) {
  using Tile = SimtTile<kSize>;
  CONVOY_UNROLL
  for (int i = 0; i < Tile::kRowFragments * 4; ++i) {
    float* const row = row_of(first_row + Tile::row() + i / 4 * 32 + i % 4);
    CONVOY_UNROLL
    for (int j = 0; j < Tile::kColumnFragments; ++j) {
      const int column = first_column + Tile::column() + j * 16;
      if (row == nullptr || column >= columns) continue;
      Float4 values;
      CONVOY_UNROLL
      for (int v = 0; v < 4; ++v) values[v] = sums[i][j * 4 + v];
      if (bias != nullptr) {
        const Float4 add = load_vector<4>(bias + column);
        CONVOY_UNROLL
        for (int v = 0; v < 4; ++v) values[v] += add[v];
      }
      store_vector(row + column, values);
    }
  }
}

}  // namespace convoy::CONVOY_GPU
