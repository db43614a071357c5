#include "engine/data/decode_png.h"

#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

#include "engine/data/decode_image.h"
#include "engine/data/exif.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr png_alloc_size_t kMostChunkBytes = 8000000;
constexpr std::uint64_t kMostInflation = 1040;  // deflate's limit is 1032 to 1
constexpr std::size_t kSignature = 8;

std::uint32_t big_endian(const std::uint8_t* p) {
  return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | p[3];
}

/// What the first chunk says. libpng checks all of it again; we need it before libpng allocates.
struct Header {
  std::uint32_t width;
  std::uint32_t height;
  int bits;      // of a channel
  int channels;  // as stored: alpha counts, a palette is one
};

Header read_header(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < kSignature + 8 + 13 || std::memcmp(&bytes[12], "IHDR", 4) != 0) {
    CONVOY_FAIL(data, "damaged PNG: no whole header");
  }
  constexpr int kChannelsOfType[] = {1, 0, 3, 1, 2, 0, 4};
  int type = bytes[25];
  return {big_endian(&bytes[16]), big_endian(&bytes[20]), bytes[24],
          type <= 6 ? kChannelsOfType[type] : 0};
}

void check_claim(const Header& header, std::size_t bytes) {
  std::uint64_t pixels = std::uint64_t{header.width} * header.height;
  std::uint64_t bits = static_cast<std::uint64_t>(header.bits) * header.channels;
  if (pixels / 8 * bits / kMostInflation > bytes) {
    CONVOY_FAIL(data, "damaged PNG: {} bytes cannot hold the {} pixels of its header", bytes,
                pixels);
  }
}

/// The orientation of the eXIf chunk, which libpng is told to pass over.
int orientation_of(std::span<const std::uint8_t> bytes) {
  std::size_t at = kSignature;
  while (bytes.size() - at >= 12) {
    std::size_t length = big_endian(&bytes[at]);
    if (length > bytes.size() - at - 12) return 1;
    if (std::memcmp(&bytes[at + 4], "eXIf", 4) == 0) {
      return exif_orientation(bytes.subspan(at + 8, length));
    }
    at += 12 + length;
  }
  return 1;
}

/// Owns libpng's state. Calls run inside guard(), which turns libpng's way out into an Error; what
/// runs there holds nothing that needs a destructor.
class PngReader {
 public:
  explicit PngReader(std::span<const std::uint8_t> bytes) : rest_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_error);
    info_ = png_ != nullptr ? png_create_info_struct(png_) : nullptr;
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      CONVOY_FAIL(resource, "PNG decoder: out of memory");
    }
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  /// Limits, what to pass over, and the header.
  void open() {
    guard([&] {
      png_set_read_fn(png_, this, on_read);
      png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
      png_set_chunk_malloc_max(png_, kMostChunkBytes);
      // Profiles, gamma, transparency and texts must change nothing, so they cannot do harm either.
      png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
      png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER,
                                  reinterpret_cast<png_const_bytep>("tRNS"), 1);
      png_read_info(png_, info_);
    });
  }

  /// Asks for three channels of 8 bits, or for palette indices; the number of passes (7 if
  /// interlaced).
  int transform() {
    int passes = 1;
    guard([&] {
      png_byte type = png_get_color_type(png_, info_);
      if (type == PNG_COLOR_TYPE_PALETTE) png_set_packing(png_);  // an index a byte
      if (type == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png_);
      if ((type & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(png_);
      png_set_scale_16(png_);
      png_set_strip_alpha(png_);
      passes = png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
    });
    return passes;
  }

  std::size_t row_bytes() const { return png_get_rowbytes(png_, info_); }

  /// The colours of a palette image; empty for others.
  std::span<const png_color> palette() const {
    png_colorp colours = nullptr;
    int count = 0;
    if (png_get_color_type(png_, info_) != PNG_COLOR_TYPE_PALETTE) return {};
    png_get_PLTE(png_, info_, &colours, &count);
    return {colours, static_cast<std::size_t>(count)};
  }

  void read_row(std::uint8_t* out) {
    guard([&] { png_read_row(png_, out, nullptr); });
  }

  /// Reads up to the last chunk, so that a cut file is found.
  void finish() {
    guard([&] { png_read_end(png_, nullptr); });
  }

 private:
  static PngReader* self(png_structp png) {
    return static_cast<PngReader*>(png_get_error_ptr(png));
  }

  /// Errors and warnings alike.
  static void on_error(png_structp png, png_const_charp text) {
    PngReader* reader = self(png);
    std::snprintf(reader->text_, sizeof reader->text_, "%s", text);
    std::longjmp(reader->jump_, 1);
  }

  static void on_read(png_structp png, png_bytep out, std::size_t count) {
    PngReader* reader = self(png);
    if (count > reader->rest_.size()) png_error(png, "the file is cut short");
    std::memcpy(out, reader->rest_.data(), count);
    reader->rest_ = reader->rest_.subspan(count);
  }

  template <class Call>
  void guard(const Call& call) {
    if (setjmp(jump_) != 0) {
      CONVOY_FAIL(data, "damaged PNG: {}", static_cast<const char*>(text_));
    }
    call();
  }

  std::span<const std::uint8_t> rest_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf jump_;
  char text_[200] = "";
};

/// All rows of `row_bytes` bytes each.
std::vector<std::uint8_t> read_rows(PngReader& reader, int passes, int height,
                                    std::size_t row_bytes) {
  CONVOY_DCHECK(reader.row_bytes() == row_bytes, "PNG decoder: rows of {} bytes, {} expected",
                reader.row_bytes(), row_bytes);
  std::vector<std::uint8_t> rows(row_bytes * static_cast<std::size_t>(height));
  for (int pass = 0; pass < passes; ++pass) {
    for (int y = 0; y < height; ++y) {
      reader.read_row(rows.data() + row_bytes * static_cast<std::size_t>(y));
    }
  }
  return rows;
}

/// libpng would take an index beyond the palette for black.
std::vector<std::uint8_t> coloured(const std::vector<std::uint8_t>& indices,
                                   std::span<const png_color> palette) {
  std::vector<std::uint8_t> pixels(indices.size() * kChannels);
  std::uint8_t* out = pixels.data();
  for (std::uint8_t i : indices) {
    if (i >= palette.size()) {
      CONVOY_FAIL(data, "damaged PNG: palette index {}, 0..{} expected", i, palette.size() - 1);
    }
    *out++ = palette[i].red;
    *out++ = palette[i].green;
    *out++ = palette[i].blue;
  }
  return pixels;
}

}  // namespace

Image decode_png(std::span<const std::uint8_t> bytes, std::int64_t max_pixels) {
  Header header = read_header(bytes);
  check_sides(header.width, header.height, max_pixels);
  check_claim(header, bytes.size());
  PngReader reader(bytes);
  reader.open();
  int passes = reader.transform();
  Image image{static_cast<int>(header.width), static_cast<int>(header.height), {}, false};
  image.rotated = orientation_of(bytes) != 1;
  std::span<const png_color> palette = reader.palette();
  std::size_t row_bytes = std::size_t{header.width} * (palette.empty() ? kChannels : 1);
  image.pixels = read_rows(reader, passes, image.height, row_bytes);
  if (!palette.empty()) image.pixels = coloured(image.pixels, palette);
  reader.finish();
  return image;
}

std::string png_version() {
  return std::string("libpng ") + png_get_libpng_ver(nullptr);
}

}  // namespace convoy
