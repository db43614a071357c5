// PNG by libpng's row interface.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/data/image.h"

namespace convoy {

/// Decodes a PNG file: grey repeated, palettes and few bits spread, 16 bits scaled, alpha dropped.
Image decode_png(std::span<const std::uint8_t> bytes, std::int64_t max_pixels);

/// "libpng 1.6.39".
std::string png_version();

}  // namespace convoy
