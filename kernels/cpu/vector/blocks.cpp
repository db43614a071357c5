// Transposes between plain layout (channels, spatial) and a channel block (spatial, block).
#include "kernels/cpu/vector/lanes.h"

namespace convoy::cpu::CONVOY_ISA {
namespace {

// Positions are taken in stretches that keep the plain side's cache lines until they are used up.
constexpr std::int64_t kStretch = 64;

template <int B>
void pack(const float* x, std::int64_t channels, std::int64_t spatial, float* y) {
  for (std::int64_t begin = 0; begin < spatial; begin += kStretch) {
    const std::int64_t end = begin + kStretch < spatial ? begin + kStretch : spatial;
    for (std::int64_t s = begin; s < end; ++s) {
      for (std::int64_t c = 0; c < channels; ++c) y[s * B + c] = x[c * spatial + s];
      for (std::int64_t c = channels; c < B; ++c) y[s * B + c] = 0;
    }
  }
}

template <int B>
void unpack(const float* x, std::int64_t channels, std::int64_t spatial, float* y) {
  for (std::int64_t begin = 0; begin < spatial; begin += kStretch) {
    const std::int64_t end = begin + kStretch < spatial ? begin + kStretch : spatial;
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t s = begin; s < end; ++s) y[c * spatial + s] = x[s * B + c];
    }
  }
}

}  // namespace

void to_blocks(const float* x, std::int64_t channels, std::int64_t spatial, int block, float* y) {
  (block == 16 ? &pack<16> : &pack<8>)(x, channels, spatial, y);
}

void from_blocks(const float* x, std::int64_t channels, std::int64_t spatial, int block, float* y) {
  (block == 16 ? &unpack<16> : &unpack<8>)(x, channels, spatial, y);
}

}  // namespace convoy::cpu::CONVOY_ISA
