// Launch configuration of batch norm: pure functions of the problem, the same on every device,
// since the order of sums follows from it.
//
// Activations are positions (pixels of all images) x channels. A block of 256 threads is a tile of
// `columns` channel vectors by `rows` positions, and walks down over `positions` of them:
//
//                columns of channels ->
//     rows       | thread 0  | thread 1  | ...        each thread: positions row, row + rows, ...
//     of         | thread columns | ...
//     positions  v                                    blockIdx.x: channels, blockIdx.y: positions
#pragma once

#include <cstdint>

#include "kernels/cuda/platform.h"

namespace convoy::CONVOY_GPU {

inline constexpr int kBatchNormThreads = 256;
/// Neighbouring channels that one block of the merging kernels takes: a sector of doubles.
inline constexpr int kMergeChannels = 4;
inline constexpr int kMergeLanes = kBatchNormThreads / kMergeChannels;

struct BatchNormGrid {
  std::int32_t columns = 1;    ///< channel vectors side by side, a power of 2
  std::int32_t rows = 1;       ///< positions side by side; columns * rows threads
  std::int64_t positions = 0;  ///< of one block
  std::int64_t blocks_x = 1;   ///< over channels
  std::int64_t blocks_y = 1;   ///< over positions: the slots of a reduction
  friend bool operator==(const BatchNormGrid&, const BatchNormGrid&) = default;

  dim3 grid() const {
    return dim3(static_cast<unsigned>(blocks_x), static_cast<unsigned>(blocks_y));
  }
};

/// For `positions` x `channels` taken in vectors of `width` channels, where neighbours in memory
/// are channels (`channels_last`) or positions. `longest`: positions that one thread takes at most.
BatchNormGrid batch_norm_grid(std::int64_t positions, std::int64_t channels, int width,
                              bool channels_last, int longest);

/// Positions per thread of reductions, whose sums in float must stay short, and of passes without
/// sums.
inline constexpr int kReductionLength = 64;
inline constexpr int kApplyLength = 256;

/// Channel vectors side by side in a block: 512 bytes of a row are enough for whole sectors.
inline constexpr int kMostColumns = 32;

/// Where a reduction leaves the two doubles of each slot and channel: planes of slots x channels.
struct SlotLayout {
  std::int64_t slots, channels;

  std::size_t bytes() const {
    return static_cast<std::size_t>(2 * slots * channels) * sizeof(double);
  }
};

}  // namespace convoy::CONVOY_GPU
