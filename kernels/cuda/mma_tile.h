// Tiles of the tensor-core products and how they lie in shared memory. A k-step is 64 bytes of each
// operand's row: 32 of bf16 or 16 of f32. An operand whose memory runs along K has its tile as rows
// of 64 bytes; one that runs along M or N as k rows of all the tile's columns. 16-byte chunks are
// permuted within their row so that neither copies nor fragment loads meet bank conflicts.
#pragma once

#include "kernels/base/bf16.h"
#include "kernels/cuda/ptx.h"

namespace convoy::CONVOY_GPU {

/// A block's tile, its warps' tiles, and the ring of stages that hides copies.
template <int kM_, int kN_, int kWarpM_, int kWarpN_, int kBlocks_>
struct MmaTile {
  static constexpr int kM = kM_, kN = kN_, kWarpM = kWarpM_, kWarpN = kWarpN_;
  static constexpr int kBlocks = kBlocks_;  ///< that share a multiprocessor
  static constexpr int kWarpsM = kM / kWarpM, kWarpsN = kN / kWarpN;
  static constexpr int kThreads = kWarpsM * kWarpsN * 32;
  static constexpr int kStages = 4;
  static constexpr int kRowBytes = 64;
  static constexpr int kStageBytes = (kM + kN) * kRowBytes;
};

using MmaTile128x128 = MmaTile<128, 128, 64, 32, 2>;
using MmaTile128x64 = MmaTile<128, 64, 64, 32, 3>;
using MmaTile64x64 = MmaTile<64, 64, 32, 32, 4>;

/// Values of T in a k-step.
template <class T>
inline constexpr int kMmaDepth = MmaTile128x128::kRowBytes / int{sizeof(T)};

/// Where 16-byte chunk `chunk` of row `row` lies in a tile that runs along K.
__device__ __forceinline__ int chunk_along_k(int row, int chunk) {
  return row * MmaTile128x128::kRowBytes + ((chunk ^ (row >> 1 & 3)) << 4);
}

/// The same in a tile of rows of `RowBytes` bytes, 128 or more. f32 fragments take four rows at a
/// time, two neighbouring chunks of each; bf16 fragments eight rows, one chunk of each.
template <class T, int RowBytes>
__device__ __forceinline__ int chunk_along_columns(int row, int chunk) {
  static_assert(RowBytes % 128 == 0);
  const int swizzle = sizeof(T) == 2 ? row & 7 : (row & 3) << 1;
  return row * RowBytes + ((chunk ^ swizzle) << 4);
}

/// Loads fragments of 32 bytes along K, the `half`-th of a k-step, of `Count` times 16 rows from
/// `row`, of a tile that runs along K.
template <class T, int Count>
__device__ __forceinline__ void load_along_k(std::uint32_t (&to)[Count][4], const std::byte* tile,
                                             int row, int half) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const void* rows[Count];
  CONVOY_UNROLL
  for (int i = 0; i < Count; ++i) {
    rows[i] = tile + chunk_along_k(row + 16 * i + lane % 16, 2 * half + lane / 16);
  }
  ptx::ldmatrix_x4<false>(to, rows);
}

/// The same of a tile of `Columns` columns; `column` is the first.
template <class T, int Columns, int Count>
__device__ __forceinline__ void load_along_columns(std::uint32_t (&to)[Count][4],
                                                   const std::byte* tile, int column, int half) {
  constexpr int kRowBytes = Columns * int{sizeof(T)};
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (sizeof(T) == 2) {
    const int k = 16 * half + lane % 8 + lane / 16 * 8;
    const void* rows[Count];
    CONVOY_UNROLL
    for (int i = 0; i < Count; ++i) {
      const int chunk = (column + 16 * i) / 8 + lane / 8 % 2;
      rows[i] = tile + chunk_along_columns<T, kRowBytes>(k, chunk);
    }
    ptx::ldmatrix_x4<true>(to, rows);
  } else {
    CONVOY_UNROLL
    for (int i = 0; i < Count; ++i) {
      CONVOY_UNROLL
      for (int j = 0; j < 4; ++j) {
        const int k = 8 * half + lane % 4 + j / 2 * 4;
        const int at = column + 16 * i + lane / 4 + j % 2 * 8;
        to[i][j] = *reinterpret_cast<const std::uint32_t*>(
            tile + chunk_along_columns<T, kRowBytes>(k, at / 4) + at % 4 * 4);
      }
    }
  }
}

/// d += a b^T over a k-step half.
template <class T, int Rows, int Columns>
__device__ __forceinline__ void multiply(float (&d)[Rows][Columns][2][4],
                                         std::uint32_t (&a)[Rows][4],
                                         std::uint32_t (&b)[Columns][4]) {
  if constexpr (sizeof(T) == 2) {
    ptx::mma_bf16(d, a, b);
  } else {
    ptx::mma_tf32(d, a, b);
  }
}

}  // namespace convoy::CONVOY_GPU
