#include "kernels/cuda/batch_norm_grid.h"

#include <algorithm>
#include <bit>

namespace convoy::CONVOY_GPU {
namespace {

// Some four waves of four blocks on the largest GPUs; fewer positions per thread than kShortest do
// not pay for a thread's start.
constexpr std::int64_t kBlocks = 2048;
constexpr std::int64_t kShortest = 4;
// A grid's extent in y.
constexpr std::int64_t kMostBlocksY = 65535;

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

BatchNormGrid batch_norm_grid(std::int64_t positions, std::int64_t channels, int width,
                              bool channels_last, int longest) {
  const std::int64_t vectors = divide_up(channels, width);
  BatchNormGrid grid;
  if (channels_last) {
    grid.columns =
        static_cast<std::int32_t>(std::min(std::bit_ceil(static_cast<std::uint64_t>(vectors)),
                                           static_cast<std::uint64_t>(kMostColumns)));
  }
  grid.rows = kBatchNormThreads / grid.columns;
  grid.blocks_x = divide_up(vectors, grid.columns);
  const std::int64_t wanted_blocks = std::max<std::int64_t>(kBlocks / grid.blocks_x, 1);
  std::int64_t length = divide_up(positions, grid.rows * wanted_blocks);
  length = std::clamp<std::int64_t>(length, kShortest, longest);
  length = std::max(length, divide_up(positions, grid.rows * kMostBlocksY));
  grid.positions = length * grid.rows;
  grid.blocks_y = std::max<std::int64_t>(divide_up(positions, grid.positions), 1);
  return grid;
}

}  // namespace convoy::CONVOY_GPU
