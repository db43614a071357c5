// Host images: rows of pixels of three 8-bit channels, interleaved (HWC), no padding between rows.
#pragma once

#include <cstdint>
#include <vector>

namespace convoy {

inline constexpr int kChannels = 3;

/// Pixels owned by somebody else. `stride` is the bytes from one row to the next, so that a crop is
/// a view too.
struct ImageView {
  int width = 0;
  int height = 0;
  const std::uint8_t* pixels = nullptr;
  std::int64_t stride = 0;

  const std::uint8_t* row(int y) const { return pixels + y * stride; }
  /// The part of `width` x `height` pixels whose first pixel is (x, y).
  ImageView crop(int x, int y, int width, int height) const {
    return {width, height, row(y) + std::int64_t{x} * kChannels, stride};
  }
};

/// Decoded pixels. `rotated`: the file carries an EXIF orientation other than 1 (pixels stay as
/// stored).
struct Image {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;
  bool rotated = false;

  ImageView view() const { return {width, height, pixels.data(), std::int64_t{width} * kChannels}; }
};

}  // namespace convoy
