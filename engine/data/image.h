// Host images: rows of pixels of three 8-bit channels, interleaved (HWC), no padding between rows.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
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

/// A rectangle of pixels; x and y may be negative where an image is padded.
struct CropBox {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;

  friend bool operator==(const CropBox&, const CropBox&) = default;
};

/// Which part of an image is wanted, told once its sides are known, and the least sides that are of
/// use: a decoder may halve the image while the part stays as large as that.
struct PartWish {
  std::function<CropBox(int width, int height)> choose;
  int least_side = 0;
};

/// The part that was wished for, and maybe pixels around it; every `shrink`-th pixel's worth.
struct ImagePart {
  Image image;
  CropBox box;  ///< what was wished for, in pixels of the file
  int x = 0;    ///< of the file's pixel where `image` begins
  int y = 0;
  int shrink = 1;  ///< 1, 2, 4 or 8 of the file's pixels make one of `image`
};

/// The part of an image that is there as a whole.
inline ImagePart part_of(Image image, const PartWish& wish) {
  const CropBox box = wish.choose(image.width, image.height);
  return {std::move(image), box};
}

}  // namespace convoy
