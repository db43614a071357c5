// Winograd's transforms of floats, and those of weights, which are floats always.
#include "kernels/cpu/vector/winograd_loops.h"

namespace convoy::cpu::CONVOY_ISA {

CONVOY_WINOGRAD_LOOPS(float)

namespace {

/// The 3x3 weights from a block of inputs to a block of outputs, outputs side by side.
struct WeightBlock {
  float w[9][kLanes][kLanes];
};

CONVOY_INLINE int64_t block_at(const WinogradWeights& w, int64_t in, int64_t out) {
  return in * w.in_block + out * w.out_block;
}

CONVOY_INLINE int64_t tap_at(const WinogradWeights& w, int tap) {
  return (w.turned ? 8 - tap : tap) * w.tap;
}

// Copies are small beside the transforms.
void gather(const WinogradWeights& w, int64_t in, int64_t out, WeightBlock& block) {
  for (int tap = 0; tap < 9; ++tap) {
    const float* p = w.data + block_at(w, in, out) + tap_at(w, tap);
    if (w.out == 1) {
      for (int i = 0; i < kLanes; ++i) store_vector(block.w[tap][i], load_vector(p + i * w.in));
      continue;
    }
    for (int i = 0; i < kLanes; ++i)
      for (int o = 0; o < kLanes; ++o) block.w[tap][i][o] = p[i * w.in + o * w.out];
  }
}

}  // namespace

void winograd_weights(const WinogradWeights& w, int64_t inputs, int64_t panel, float* factors,
                      int64_t stride) {
  float* target = factors + panel * inputs * 2 * kLanes;
  WeightBlock block;
  for (int64_t in = 0; in < inputs / kLanes; ++in) {
    for (int half = 0; half < 2; ++half) {
      gather(w, in, 2 * panel + half, block);
      for (int i = 0; i < kLanes; ++i) {
        Vector taps[9], lines[kIn * 3], points[kIn * kIn];
        for (int tap = 0; tap < 9; ++tap) taps[tap] = load_vector(block.w[tap][i]);
        for (int j = 0; j < 3; ++j) weight_line(taps + j, 3, lines + j, 3);
        for (int j = 0; j < kIn; ++j) weight_line(lines + j * 3, 1, points + j * kIn, 1);
        store_points(points, target + ((in * kLanes + i) * 2 + half) * kLanes, stride);
      }
    }
  }
}

void winograd_weight_gradient(const WinogradWeights& w, int64_t in, int64_t outputs, int parts,
                              int64_t part_stride, const float* sums, int64_t stride) {
  WeightBlock block;
  for (int64_t out = 0; out < outputs / kLanes; ++out) {
    for (int i = 0; i < kLanes; ++i) {
      const float* p = sums + ((in * (outputs / kLanes) + out) * kLanes + i) * kLanes;
      Vector points[kIn * kIn], lines[3 * kIn], taps[9];
      for (int j = 0; j < kIn * kIn; ++j) {
        points[j] = load_vector(p + j * stride);
        for (int part = 1; part < parts; ++part)
          points[j] += load_vector(p + j * stride + part * part_stride);
      }
      for (int j = 0; j < kIn; ++j) weight_gradient_line(points + j, kIn, lines + j, kIn);
      for (int j = 0; j < 3; ++j) weight_gradient_line(lines + j * kIn, 1, taps + j * 3, 1);
      for (int tap = 0; tap < 9; ++tap) store_vector(block.w[tap][i], taps[tap]);
    }
    for (int tap = 0; tap < 9; ++tap) {
      float* q = w.data + block_at(w, in, out) + tap_at(w, tap);
      for (int i = 0; i < kLanes; ++i)
        for (int o = 0; o < kLanes; ++o) q[i * w.in + o * w.out] = block.w[tap][i][o];
    }
  }
}

}  // namespace convoy::cpu::CONVOY_ISA
