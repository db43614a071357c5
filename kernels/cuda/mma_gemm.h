// The product on tensor cores that convolutions and linear layers are made of:
//
//     c (m x n) = a (m x depth) b (n x depth)^T (+ bias of each column)
//
// Loaders (mma_loaders.h) bring the operands; a ring of stages is filled by asynchronous copies
// kStages - 1 k-steps ahead. A wait covers the thread's own copies only, so that a barrier follows
// it; the same barrier tells that nobody reads the stage that is filled next. Results go through
// shared memory, so that rows are stored 16 bytes a thread.
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/cuda/mma_loaders.h"
#include "kernels/cuda/shared.h"
#include "kernels/cuda/vector.h"

namespace convoy::CONVOY_GPU {

/// Where rows of the result lie: rows are places (image, row, column) of a tensor.
struct MmaRows {
  int place_h, place_w;
  std::int64_t image, row, column;  // values from one to the next

  CONVOY_HOST_DEVICE std::int64_t offset(int index) const {
    const Digits at = digits_of(index, place_h, place_w);
    return at.a * image + at.b * row + at.c * column;
  }
};

/// Split steps that take all of a product's depth.
inline constexpr int kMmaAllSteps = 1 << 30;

/// One product. Rows of the result are multiples of 16 bytes, and so is each part of `n`. Its depth
/// may be split into parts of `split_steps` k-steps, with results `split_pitch` values apart.
template <class A, class B, class Out>
struct MmaProblem {
  typename A::Params a;
  typename B::Params b;
  int m, n, depth;
  int split_steps;
  std::int64_t split_pitch;
  Out* c;
  MmaRows rows;
  const float* bias;  ///< null: none
};

/// What one launch computes: a product for each blockIdx.z, or one whose split blockIdx.z names.
/// Structs without padding: gcc's pattern initialisation (of the checks) corrupts padded arrays.
template <class A, class B, class Out, int Classes>
struct MmaArguments {
  MmaProblem<A, B, Out> problems[Classes];
};

template <class Tile>
struct MmaStorage {
  alignas(128) std::byte stages[Tile::kStages][Tile::kStageBytes];
  std::int64_t rows[Tile::kM];
};

/// The products of a thread's warp.
template <class T, class Tile, class A, class B>
class MmaAccumulators {
 public:
  static constexpr int kRows = Tile::kWarpM / 16, kColumns = Tile::kWarpN / 16;

  __device__ __forceinline__ MmaAccumulators() {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    row_ = warp / Tile::kWarpsN * Tile::kWarpM;
    column_ = warp % Tile::kWarpsN * Tile::kWarpN;
    CONVOY_UNROLL
    for (int i = 0; i < kRows; ++i) {
      CONVOY_UNROLL
      for (int j = 0; j < kColumns; ++j) {
        CONVOY_UNROLL
        for (int k = 0; k < 8; ++k) sums_[i][j][k / 4][k % 4] = 0;
      }
    }
  }

  /// Adds the products of one stage.
  __device__ __forceinline__ void add(const std::byte* stage) {
    CONVOY_UNROLL
    for (int half = 0; half < 2; ++half) {
      std::uint32_t a[kRows][4], b[kColumns][4];
      load<A, Tile::kM>(a, stage, row_, half);
      load<B, Tile::kN>(b, stage + Tile::kM * Tile::kRowBytes, column_, half);
      multiply<T>(sums_, a, b);
    }
  }

  /// Adds bias[column] to each column below `columns`.
  __device__ __forceinline__ void add_bias(const float* bias, int columns) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    CONVOY_UNROLL
    for (int j = 0; j < 4 * kColumns; ++j) {
      const int column = column_ + j / 2 * 8 + lane % 4 * 2 + j % 2;
      const float value = column < columns ? bias[column] : 0.0f;
      CONVOY_UNROLL
      for (int i = 0; i < kRows; ++i) {
        float(&sums)[4] = sums_[i][j / 4][j / 2 % 2];
        sums[j % 2] += value;
        sums[2 + j % 2] += value;
      }
    }
  }

  /// Calls visit(row, column, first, second) for all values, two neighbours at a time.
  template <class Visit>
  __device__ __forceinline__ void for_each_pair(Visit visit) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    CONVOY_UNROLL
    for (int i = 0; i < kRows; ++i) {
      CONVOY_UNROLL
      for (int j = 0; j < 2 * kColumns; ++j) {
        const float(&sums)[4] = sums_[i][j / 2][j % 2];
        const int row = row_ + 16 * i + lane / 4, column = column_ + 8 * j + lane % 4 * 2;
        visit(row, column, sums[0], sums[1]);
        visit(row + 8, column, sums[2], sums[3]);
      }
    }
  }

 private:
  template <class Operand, int Extent, int Count>
  static __device__ __forceinline__ void load(std::uint32_t (&to)[Count][4], const std::byte* tile,
                                              int first, int half) {
    if constexpr (Operand::kAlongK) {
      load_along_k<T>(to, tile, first, half);
    } else {
      load_along_columns<T, Extent>(to, tile, first, half);
    }
  }

  int row_, column_;
  float sums_[kRows][kColumns][2][4];
};

/// Puts the warps' results, rounded, where the stages were.
template <class Tile, class Out, class Accumulators>
__device__ __forceinline__ void stage_results(const Accumulators& sums, std::byte* staged) {
  constexpr int kRowBytes = Tile::kN * int{sizeof(Out)};
  static_assert(Tile::kM * kRowBytes <= Tile::kStages * Tile::kStageBytes);
  sums.for_each_pair([&](int row, int column, float first, float second) {
    const Vector<Out, 2> pair = {static_cast<Out>(first), static_cast<Out>(second)};
    const int byte = column * int{sizeof(Out)};
    store_vector(reinterpret_cast<Out*>(
                     staged + chunk_along_columns<Out, kRowBytes>(row, byte / 16) + byte % 16),
                 pair);
  });
}

/// Stores staged rows, 16 bytes a thread.
template <class Tile, class Out>
__device__ __forceinline__ void store_results(const std::byte* staged, const std::int64_t* rows,
                                              int valid_rows, int valid_columns, Out* to) {
  constexpr int kValues = 16 / int{sizeof(Out)}, kPieces = Tile::kN / kValues;
  using Part = Share<Tile::kM, kPieces, Tile::kThreads>;
  const int column = Part::piece() * kValues;
  for (int i = 0; i < Part::kCount; ++i) {
    const int row = Part::row(i);
    if (row >= valid_rows || column >= valid_columns) continue;
    const int from = chunk_along_columns<Out, kPieces * 16>(row, Part::piece());
    store_vector(to + rows[row] + column,
                 load_vector<kValues>(reinterpret_cast<const Out*>(staged + from)));
  }
}

/// Sums the k-steps first_step to last_step of the block's tile.
template <class Tile, class Loaders, class Accumulators>
__device__ __forceinline__ void mma_main_loop(std::byte (&stages)[Tile::kStages][Tile::kStageBytes],
                                              Loaders& loaders, int steps, Accumulators& sums) {
  constexpr int kAhead = Tile::kStages - 1;
  for (int step = 0; step < kAhead; ++step) {
    if (step < steps) loaders.load(stages[step]);
    ptx::cp_async_commit();
  }
  for (int step = 0; step < steps; ++step) {
    ptx::cp_async_wait<kAhead - 1>();
    __syncthreads();
    if (step + kAhead < steps) loaders.load(stages[(step + kAhead) % Tile::kStages]);
    ptx::cp_async_commit();  // in the tail too: the wait's count stays the same
    sums.add(stages[step % Tile::kStages]);
  }
  ptx::cp_async_wait<0>();
  __syncthreads();
}

template <class Tile, class A, class B>
struct MmaLoaders {
  typename A::template Loader<Tile::kM, Tile::kThreads> a;
  typename B::template Loader<Tile::kN, Tile::kThreads> b;

  __device__ __forceinline__ void load(std::byte* stage) {
    a.load(stage);
    b.load(stage + Tile::kM * Tile::kRowBytes);
  }
};

/// Threads that load f32 values one by one, copy small pieces of many rows, or look up their class
/// need registers of more than their share.
template <class T, class Tile, class A, int Classes>
inline constexpr int kMmaBlocks = sizeof(T) == 2 && A::kPiece == 16 && Classes == 1
                                      ? Tile::kBlocks
                                      : Tile::kBlocks / 2;

template <class T, class Tile, class A, class B, class Out, int Classes>
__global__ void __launch_bounds__(Tile::kThreads, kMmaBlocks<T, Tile, A, Classes>)
    mma_kernel(const MmaArguments<A, B, Out, Classes> arguments) {
  auto& shared = smem<MmaStorage<Tile>>();
  const int part = static_cast<int>(blockIdx.z);
  const MmaProblem<A, B, Out>& problem = arguments.problems[Classes == 1 ? 0 : part];
  const int split = Classes == 1 ? part : 0;
  const int tiles_n = (problem.n + Tile::kN - 1) / Tile::kN;  // neighbours share rows of a
  const int row = static_cast<int>(blockIdx.x) / tiles_n * Tile::kM;
  const int column = static_cast<int>(blockIdx.x) % tiles_n * Tile::kN;
  const int all_steps = (problem.depth + kMmaDepth<T> - 1) / kMmaDepth<T>;
  const int first_step = split * problem.split_steps;
  const int steps = min(problem.split_steps, all_steps - first_step);
  const int first_k = first_step * kMmaDepth<T>;

  for (int i = static_cast<int>(threadIdx.x); i < Tile::kM; i += Tile::kThreads) {
    shared.rows[i] = problem.rows.offset(row + i);
  }
  MmaLoaders<Tile, A, B> loaders{{problem.a, row, first_k}, {problem.b, column, first_k}};
  MmaAccumulators<T, Tile, A, B> sums;
  mma_main_loop<Tile>(shared.stages, loaders, row < problem.m ? steps : 0, sums);
  if (problem.bias != nullptr) sums.add_bias(problem.bias + column, problem.n - column);
  stage_results<Tile, Out>(sums, shared.stages[0]);
  __syncthreads();
  store_results<Tile>(shared.stages[0], shared.rows, problem.m - row, problem.n - column,
                      problem.c + split * problem.split_pitch + column);
}

}  // namespace convoy::CONVOY_GPU
