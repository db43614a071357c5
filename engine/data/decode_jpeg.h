// JPEG by libjpeg's own interface: TurboJPEG's shows neither the Adobe marker nor EXIF blocks, and
// limits neither scans nor memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/data/image.h"

namespace convoy {

/// Decodes a JPEG file: grey repeated, CMYK and YCCK (Adobe's inversion honoured) turned into RGB.
Image decode_jpeg(std::span<const std::uint8_t> bytes, std::int64_t max_pixels);

/// Decodes the wished part alone, and what its borders need; the pixels are decode_jpeg()'s where
/// nothing is shrunk. The whole file is read all the same, so that damage is found wherever it is.
ImagePart decode_jpeg_part(std::span<const std::uint8_t> bytes, std::int64_t max_pixels,
                           const PartWish& wish);

/// "libjpeg-turbo 2.1.5".
std::string jpeg_version();

}  // namespace convoy
