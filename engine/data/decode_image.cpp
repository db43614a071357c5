#include "engine/data/decode_image.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <string_view>

#include "engine/data/decode_jpeg.h"
#include "engine/data/decode_png.h"
#include "engine/data/file.h"
#include "engine/io/text.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

using std::string_view_literals::operator""sv;

bool starts_with(std::span<const std::uint8_t> bytes, std::string_view start, std::size_t at = 0) {
  return bytes.size() >= at + start.size() &&
         std::memcmp(bytes.data() + at, start.data(), start.size()) == 0;
}

/// "BM" alone opens many texts: the reserved zeros and a known header length must follow.
bool is_bmp(std::span<const std::uint8_t> bytes) {
  if (!starts_with(bytes, "BM") || !starts_with(bytes, "\0\0\0\0"sv, 6)) return false;
  constexpr std::array<int, 6> kHeaderLengths = {12, 40, 52, 56, 108, 124};
  return bytes.size() >= 18 && starts_with(bytes, "\0\0\0"sv, 15) &&
         std::find(kHeaderLengths.begin(), kHeaderLengths.end(), bytes[14]) != kHeaderLengths.end();
}

std::string reason_of(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return "0 bytes, a JPEG or PNG image expected";
  ImageType type = image_type(bytes);
  if (type == ImageType::none) return "no image by its first bytes, JPEG or PNG expected";
  return fmt::format("a {} image, only JPEG and PNG are read", name(type));
}

}  // namespace

ImageType image_type(std::span<const std::uint8_t> start) {
  if (starts_with(start, "\xFF\xD8\xFF")) return ImageType::jpeg;
  if (starts_with(start, "\x89PNG\r\n\x1A\n")) return ImageType::png;
  if (starts_with(start, "GIF87a") || starts_with(start, "GIF89a")) return ImageType::gif;
  if (starts_with(start, "RIFF") && starts_with(start, "WEBP", 8)) return ImageType::webp;
  if (starts_with(start, "II*\0"sv) || starts_with(start, "MM\0*"sv)) return ImageType::tiff;
  return is_bmp(start) ? ImageType::bmp : ImageType::none;
}

const char* name(ImageType type) {
  switch (type) {
    case ImageType::jpeg:
      return "JPEG";
    case ImageType::png:
      return "PNG";
    case ImageType::gif:
      return "GIF";
    case ImageType::webp:
      return "WebP";
    case ImageType::bmp:
      return "BMP";
    case ImageType::tiff:
      return "TIFF";
    case ImageType::none:
      break;
  }
  return "unknown";
}

bool has_image_ending(const std::string& path) {
  constexpr std::array kEndings = {".jpg"sv, ".jpeg"sv, ".png"sv, ".ppm"sv,  ".bmp"sv, ".pgm"sv,
                                   ".tif"sv, ".tiff"sv, ".gif"sv, ".webp"sv, ".jpe"sv, ".pnm"sv};
  auto ends_with = [&](std::string_view ending) {
    if (path.size() < ending.size()) return false;
    return std::equal(ending.begin(), ending.end(), path.end() - std::ssize(ending),
                      [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + 32 : b); });
  };
  return std::any_of(kEndings.begin(), kEndings.end(), ends_with);
}

void check_sides(std::uint64_t width, std::uint64_t height, std::int64_t max_pixels) {
  // Formats give sides below 2^32, so the product fits.
  if (width == 0 || height == 0) CONVOY_FAIL(data, "{} x {} pixels: no pixels", width, height);
  bool too_long = std::max(width, height) > INT32_MAX;
  if (too_long || width * height > static_cast<std::uint64_t>(max_pixels)) {
    CONVOY_FAIL(data, "too large: {} x {} pixels, limit {} (--max-pixels)", width, height,
                max_pixels);
  }
}

Image decode_image(std::span<const std::uint8_t> bytes, std::int64_t max_pixels) {
  switch (image_type(bytes)) {
    case ImageType::jpeg:
      return decode_jpeg(bytes, max_pixels);
    case ImageType::png:
      return decode_png(bytes, max_pixels);
    default:
      CONVOY_FAIL(data, "{}", reason_of(bytes));
  }
}

ImagePart decode_image_part(std::span<const std::uint8_t> bytes, std::int64_t max_pixels,
                            const PartWish& wish) {
  if (image_type(bytes) == ImageType::jpeg) return decode_jpeg_part(bytes, max_pixels, wish);
  return part_of(decode_image(bytes, max_pixels), wish);
}

namespace {

/// decode(bytes of the file); errors start with its path.
template <class Decode>
auto decode_file(const std::string& path, std::int64_t max_pixels, const Decode& decode) {
  CONVOY_CHECK(max_pixels >= 1 && max_pixels <= kDefaultMaxPixels * 1000,
               "--max-pixels {}: 1 to {} expected", max_pixels, kDefaultMaxPixels * 1000);
  // Even uncompressed, 16 bits of red, green, blue and alpha are 8 bytes a pixel.
  constexpr std::int64_t kMetadataRoom = std::int64_t{64} << 20;
  Bytes bytes = read_file(path, kMetadataRoom + 8 * max_pixels);
  try {
    return decode(bytes);
  } catch (const Error& error) {
    throw Error(error.kind(), printable(path) + ": " + error.text(), error.place());
  }
}

}  // namespace

Image read_image_file(const std::string& path, std::int64_t max_pixels) {
  return decode_file(path, max_pixels,
                     [&](const Bytes& bytes) { return decode_image(bytes, max_pixels); });
}

ImagePart read_image_file_part(const std::string& path, std::int64_t max_pixels,
                               const PartWish& wish) {
  return decode_file(path, max_pixels, [&](const Bytes& bytes) {
    return decode_image_part(bytes, max_pixels, wish);
  });
}

std::string decoder_versions() {
  return jpeg_version() + ", " + png_version();
}

}  // namespace convoy
