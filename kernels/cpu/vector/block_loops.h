// Transposes between plain layout (channels, spatial) and a channel block (spatial, block), for the
// files that say of what.
#pragma once

#include "kernels/cpu/vector/lanes.h"

namespace convoy::cpu::CONVOY_ISA {
namespace {

// Positions are taken in stretches that keep the plain side's cache lines until they are used up.
constexpr std::int64_t kStretch = 64;

template <int B, class T>
void pack(const T* x, std::int64_t channels, std::int64_t spatial, T* y) {
  for (std::int64_t begin = 0; begin < spatial; begin += kStretch) {
    const std::int64_t end = begin + kStretch < spatial ? begin + kStretch : spatial;
    for (std::int64_t s = begin; s < end; ++s) {
      for (std::int64_t c = 0; c < channels; ++c) y[s * B + c] = x[c * spatial + s];
      for (std::int64_t c = channels; c < B; ++c) y[s * B + c] = 0;
    }
  }
}

template <int B, class T>
void unpack(const T* x, std::int64_t channels, std::int64_t spatial, T* y) {
  for (std::int64_t begin = 0; begin < spatial; begin += kStretch) {
    const std::int64_t end = begin + kStretch < spatial ? begin + kStretch : spatial;
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t s = begin; s < end; ++s) y[c * spatial + s] = x[s * B + c];
    }
  }
}

}  // namespace
}  // namespace convoy::cpu::CONVOY_ISA

/// Both directions over T.
#define CONVOY_BLOCK_LOOPS(T)                                                                  \
  void to_blocks(const T* x, std::int64_t channels, std::int64_t spatial, int block, T* y) {   \
    (block == 16 ? &pack<16, T> : &pack<8, T>)(x, channels, spatial, y);                       \
  }                                                                                            \
  void from_blocks(const T* x, std::int64_t channels, std::int64_t spatial, int block, T* y) { \
    (block == 16 ? &unpack<16, T> : &unpack<8, T>)(x, channels, spatial, y);                   \
  }
