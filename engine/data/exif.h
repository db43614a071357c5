// The one thing that is read from EXIF blocks. A broken block says nothing and rejects nothing.
#pragma once

#include <cstdint>
#include <span>

namespace convoy {

/// The orientation 2..8 that a TIFF-structured EXIF block states; 1 if it states none or is broken.
int exif_orientation(std::span<const std::uint8_t> tiff);

}  // namespace convoy
