// JPEG and PNG files made in memory for tests. PNG is written chunk by chunk without libpng, so
// that any kind, damaged ones included, can be made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/image.h"

namespace convoy::testing {

using Bytes = std::vector<std::uint8_t>;

/// PNG's colour types.
enum class PngColour { grey = 0, rgb = 2, palette = 3, grey_alpha = 4, rgba = 6 };

struct PngOptions {
  int width = 1;
  int height = 1;
  int bits = 8;
  PngColour colour = PngColour::rgb;
  bool interlaced = false;
  Bytes palette;              // red, green, blue, ...
  Bytes transparency;         // tRNS
  std::vector<Bytes> chunks;  // whole chunks to put before the image data
};

/// A chunk: length, type, data, checksum.
Bytes png_chunk(const std::string& type, const Bytes& data);

/// A PNG file of `samples` (values of each channel of each pixel, row by row).
Bytes make_png(const PngOptions& options, const std::vector<int>& samples);

/// An 8-bit RGB PNG of `image`.
Bytes make_png(const Image& image);

/// A PNG file that claims these sides and holds one compressed byte of pixels.
Bytes make_png_claiming(std::uint32_t width, std::uint32_t height);

struct JpegOptions {
  int quality = 95;
  bool progressive = false;
  bool scan_a_coefficient = false;  // progressive, a scan for each coefficient of each component
  int restart_interval = 0;         // in blocks
  int luma_h = 1;                   // sampling factors of the first component
  int luma_v = 1;
  bool grey = false;
  Bytes exif;  // content of an APP1 marker after "Exif\0\0"; none if empty
};

Bytes make_jpeg(const Image& image, const JpegOptions& options = {});

/// The JPEG `file` with other sides in its frame header.
Bytes with_sides(Bytes file, int width, int height);

/// A JPEG of four inks, `inks` being 4 bytes a pixel as they are to be stored.
Bytes make_cmyk_jpeg(int width, int height, const Bytes& inks, bool ycck, bool adobe_marker);

/// A little-endian TIFF block that states `orientation`.
Bytes exif_block(int orientation);

/// A smooth picture that depends on `seed`.
Image test_image(int width, int height, int seed = 0);

/// All pixels of one colour.
Image plain_image(int width, int height, int red, int green, int blue);

}  // namespace convoy::testing
