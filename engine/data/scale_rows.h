// The pass of a resize along rows: 16 rows at a time, one lane each.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/data/image.h"

namespace convoy {

/// Fractional bits of resize weights: 32 bits less 8 of the pixel and 2 for sums over 1.
inline constexpr int kResizeBits = 22;

/// For each wanted output pixel of an axis the first source pixel, their number (at least 1), and
/// their weights.
struct ResizeWeights {
  int most = 0;  ///< weights reserved for each output pixel
  std::vector<int> first;
  std::vector<int> number;
  std::vector<std::int32_t> values;

  const std::int32_t* of(int i) const { return values.data() + static_cast<std::size_t>(i) * most; }
  int count() const { return static_cast<int>(first.size()); }
};

/// The rows top..top+rows-1 of `source`, each scaled to weights.count() pixels at `out`, one row
/// behind the other: sums of weight * pixel, rounded and clipped to 8 bits.
void scale_rows(const ImageView& source, const ResizeWeights& weights, int top, int rows,
                std::uint8_t* out);

}  // namespace convoy
