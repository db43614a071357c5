// Antialiased bilinear resizing with Pillow's results, bit for bit: a triangle filter as wide as
// the scale, weights of 22 fractional bits, one pass along rows and one along columns with 8 bits
// between.
#pragma once

#include <cstdint>

#include "engine/data/image.h"

namespace convoy {

/// The part of the source that is scaled to the whole result, in pixels; the filter may reach
/// beyond.
struct ResizeBox {
  float left = 0;
  float top = 0;
  float right = 0;
  float bottom = 0;
};

/// A size in pixels, 64 bits as only a window of it need exist.
struct Extent {
  std::int64_t width = 0;
  std::int64_t height = 0;

  friend bool operator==(const Extent&, const Extent&) = default;
};

/// The part of the result that is wanted.
struct ResizeWindow {
  std::int64_t x = 0;
  std::int64_t y = 0;
  int width = 0;
  int height = 0;
};

/// `source` scaled to width x height.
Image resize(const ImageView& source, int width, int height);

/// The part `box` of `source` scaled to width x height, like Pillow's `resize(..., box=...)`.
Image resize(const ImageView& source, int width, int height, const ResizeBox& box);

/// The part `window` of `source` scaled to `full`: what scaling all of it and cropping would give.
Image resize_window(const ImageView& source, const Extent& full, const ResizeWindow& window);

}  // namespace convoy
