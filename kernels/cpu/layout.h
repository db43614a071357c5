// Layouts of the cpu backend.
//
//     0       plain: NCHW, OIHW, row-major
//     1, 2    activations in channel blocks: nChw8c, nChw16c; the last block is padded with zeros
//     16...   weights as the convolution library likes them, see weight_layouts.h
#pragma once

#include <cstdint>

#include "kernels/base/buffer.h"
#include "kernels/base/shape.h"

namespace convoy::cpu {

inline constexpr LayoutId kBlock8 = 1;
inline constexpr LayoutId kBlock16 = 2;
inline constexpr LayoutId kFirstWeightLayout = 16;

/// Whether the layout is plain or one of channel blocks.
inline bool is_activation_layout(LayoutId layout) {
  return layout >= kPlain && layout <= kBlock16;
}

/// Channels side by side in memory: 1, 8 or 16.
inline int block_of(LayoutId layout) {
  return layout == kBlock16 ? 16 : layout == kBlock8 ? 8 : 1;
}

/// The layout in blocks that this machine's vectors prefer.
LayoutId block_layout();

/// "plain", "nChw8c", "nChw16c", "weights 17".
const char* name(LayoutId layout);

/// An activation (n, c, spatial) as runs: contiguous floats of one image and one channel block, in
/// the order of memory.
struct Runs {
  Runs(LayoutId layout, std::int64_t n, std::int64_t channels, std::int64_t spatial);

  int period;             ///< channels of a run
  std::int64_t blocks;    ///< runs of one image
  std::int64_t count;     ///< runs
  std::int64_t length;    ///< floats of a run
  std::int64_t channels;  ///< of the tensor, without padding
  std::int64_t floats() const { return count * length; }
  /// Channels of run `i` that are no padding.
  std::int64_t used(std::int64_t i) const;
};

/// Floats of a tensor of `shape` in a plain or blocked layout.
std::int64_t stored_floats(LayoutId layout, const Shape& shape);

/// The extents of an activation of any rank: leading two are n and c, the rest is spatial.
struct ActivationShape {
  explicit ActivationShape(const Shape& shape);
  std::int64_t n = 1, c = 1, spatial = 1;
};

}  // namespace convoy::cpu
