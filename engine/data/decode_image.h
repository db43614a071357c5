// Compressed images to pixels. The first bytes decide the type, never the name. Errors are `data`
// and say why; a decoder's warning counts as damage.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/data/image.h"

namespace convoy {

/// What the first bytes of a file say it is.
enum class ImageType { jpeg, png, gif, webp, bmp, tiff, none };

/// width x height that a header may claim unless `--max-pixels` says otherwise (Pillow's limit).
inline constexpr std::int64_t kDefaultMaxPixels = 178956970;

/// First bytes that image_type needs to see.
inline constexpr std::int64_t kSignatureBytes = 32;

/// The type that the first bytes of a file show.
ImageType image_type(std::span<const std::uint8_t> start);

/// "JPEG", "PNG", ...
const char* name(ImageType type);

/// Whether a file's name ends like that of an image (.jpg, .png, .webp, ... in any case).
bool has_image_ending(const std::string& path);

/// Decodes a JPEG or PNG file held in memory: three channels of 8 bits, pixels as stored.
Image decode_image(std::span<const std::uint8_t> bytes,
                   std::int64_t max_pixels = kDefaultMaxPixels);

/// Reads and decodes a file; errors start with its path.
Image read_image_file(const std::string& path, std::int64_t max_pixels = kDefaultMaxPixels);

/// Throws "too large" if the sides that a header claims exceed `max_pixels`.
void check_sides(std::uint64_t width, std::uint64_t height, std::int64_t max_pixels);

/// The wished part of an image: of a JPEG no more is decoded than that needs.
ImagePart decode_image_part(std::span<const std::uint8_t> bytes, std::int64_t max_pixels,
                            const PartWish& wish);

/// Reads a file and decodes a part of it; errors start with its path.
ImagePart read_image_file_part(const std::string& path, std::int64_t max_pixels,
                               const PartWish& wish);

/// "libjpeg-turbo 2.1.5, libpng 1.6.39", for the `run` line.
std::string decoder_versions();

}  // namespace convoy
