// What the kernels of batch norm share: which channels and positions a thread takes, loads of
// channel vectors, and what a ReLU lets pass.
#pragma once

#include "kernels/cuda/batch_norm_kernels.h"
#include "kernels/cuda/number_types.h"
#include "kernels/cuda/vector.h"

namespace convoy::CONVOY_GPU {

/// The part of a BatchNormProblem that a kernel uses.
struct BatchNormTile {
  std::int64_t positions, spatial, channels;
  std::int64_t block_positions;
  std::int32_t columns, rows;
};

inline BatchNormTile tile_of(const BatchNormProblem& problem) {
  return {problem.positions,      problem.spatial,      problem.channels,
          problem.grid.positions, problem.grid.columns, problem.grid.rows};
}

/// A thread's place: its first channel, and the positions begin, begin + step, ... below end.
template <int kWidth>
struct ThreadPlace {
  __device__ __forceinline__ explicit ThreadPlace(const BatchNormTile& tile)
      : column(static_cast<int>(threadIdx.x) & (tile.columns - 1)),
        row(static_cast<int>(threadIdx.x) / tile.columns),
        channel((static_cast<std::int64_t>(blockIdx.x) * tile.columns + column) * kWidth),
        block_begin(blockIdx.y * tile.block_positions) {
    const std::int64_t block_end = block_begin + tile.block_positions;
    end = channel < tile.channels ? (block_end < tile.positions ? block_end : tile.positions) : 0;
    begin = block_begin + row;
  }
  int column, row;
  std::int64_t channel, block_begin, begin, end;
};

/// Elements before the one at (position, channel). Vectors lie channels last.
template <int kWidth>
__device__ __forceinline__ std::int64_t offset_of(const BatchNormTile& tile,
                                                  const ActivationStrides& strides,
                                                  std::int64_t position, std::int64_t channel) {
  if constexpr (kWidth > 1) {
    return position * tile.channels + channel;
  } else {
    const std::int64_t image = position / tile.spatial;
    return image * strides.image + (position - image * tile.spatial) * strides.position +
           channel * strides.channel;
  }
}

/// Numbers of a block's channels in shared memory: channel of a vector, then column. Rows are apart
/// so that threads which go over channels in order write to different banks.
template <class Number, int kWidth>
struct BlockChannels {
  Number of[kWidth][kMostColumns + 128 / (kWidth * sizeof(Number))];
  __device__ __forceinline__ Number& at(int channel_in_block) {
    return of[channel_in_block % kWidth][channel_in_block / kWidth];
  }
};

/// The channel that the thread works out for its block; -1 where there is none left.
template <int kWidth>
__device__ __forceinline__ std::int64_t channel_of_thread(const BatchNormTile& tile) {
  const int thread = static_cast<int>(threadIdx.x), channels = tile.columns * kWidth;
  const std::int64_t channel = static_cast<std::int64_t>(blockIdx.x) * channels + thread;
  return thread < channels && channel < tile.channels ? channel : -1;
}

template <class T, int kWidth>
__device__ __forceinline__ Vector<T, kWidth> load_at(const BatchNormTile& tile,
                                                     const ActivationIn& in, std::int64_t position,
                                                     std::int64_t channel) {
  const T* data = static_cast<const T*>(in.data);
  const std::int64_t offset = offset_of<kWidth>(tile, in.strides, position, channel);
  if constexpr (kWidth > 1) return load_vector<kWidth>(data + offset);
  Vector<T, kWidth> one;
  one[0] = data[offset];
  return one;
}

template <class T, int kWidth>
__device__ __forceinline__ void store_at(const BatchNormTile& tile, const ActivationOut& out,
                                         std::int64_t position, std::int64_t channel,
                                         const Vector<T, kWidth>& values) {
  T* data = static_cast<T*>(out.data);
  const std::int64_t offset = offset_of<kWidth>(tile, out.strides, position, channel);
  if constexpr (kWidth > 1) {
    store_vector(data + offset, values);
  } else {
    data[offset] = values[0];
  }
}

/// A bit for each channel whose gradient passes the ReLU behind y: NaN does, as in the elementwise
/// ReLU.
template <class T, int kWidth>
__device__ __forceinline__ unsigned passing(const Vector<T, kWidth>& y) {
  unsigned bits = 0;
  CONVOY_UNROLL
  for (int i = 0; i < kWidth; ++i) bits |= to_math(y[i]) <= 0 ? 0u : 1u << i;
  return bits;
}

/// The same for the thread's channels at `position`, from what forward has left.
template <class T, int kWidth>
__device__ __forceinline__ unsigned load_passing(const BatchNormTile& tile, const BatchNormIn& in,
                                                 std::int64_t position, std::int64_t channel) {
  if (!in.relu) return ~0u;
  if (!in.mask) return passing<T, kWidth>(load_at<T, kWidth>(tile, in.y, position, channel));
  const std::int64_t element = position * tile.channels + channel;
  const unsigned byte = in.mask[element / kMaskChannels<T>];
  return kWidth > 1 ? byte : byte >> (element % kMaskChannels<T>);
}

/// Gradient before the ReLU of channel i.
template <class T, int kWidth>
__device__ __forceinline__ Math<T> before_relu(unsigned passing, const Vector<T, kWidth>& dy,
                                               int i) {
  return passing >> i & 1 ? to_math(dy[i]) : Math<T>(0);
}

}  // namespace convoy::CONVOY_GPU
