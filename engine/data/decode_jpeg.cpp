#include "engine/data/decode_jpeg.h"

// libjpeg's header needs FILE and size_t to be known before it.
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include <jpeglib.h>

#include <algorithm>

#include "engine/data/decode_image.h"
#include "engine/data/exif.h"
#include "kernels/base/error.h"

#define CONVOY_TEXT2(x) #x
#define CONVOY_TEXT(x) CONVOY_TEXT2(x)

namespace convoy {
namespace {

constexpr int kMostScans = 100;
constexpr unsigned kMarkerBytes = 0xFFFF;
// An entropy-coded block of 64 pixels takes a bit or more, so subsampled colours cannot give more
// pixels for a byte than this: a short file that claims more is cut, whatever it says.
constexpr std::uint64_t kMostPixelsPerByte = 4096;

struct Failure {
  jpeg_error_mgr manager;  // first: libjpeg hands out a pointer to it
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* failure = reinterpret_cast<Failure*>(info->err);
  (*info->err->format_message)(info, failure->text);
  std::longjmp(failure->jump, 1);
}

void on_message(j_common_ptr info, int level) {
  if (level < 0) leave(info);  // a warning: data are damaged
}

void on_progress(j_common_ptr info) {
  if (!info->is_decompressor) return;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  auto* failure = reinterpret_cast<Failure*>(info->err);
  std::snprintf(failure->text, sizeof failure->text, "more than %d scans", kMostScans);
  std::longjmp(failure->jump, 1);
}

/// Owns libjpeg's state. Its calls run inside guard(), which turns libjpeg's way out into an Error;
/// what runs there holds nothing that needs a destructor.
class JpegReader {
 public:
  JpegReader() {
    info_.err = jpeg_std_error(&failure_.manager);
    failure_.manager.error_exit = leave;
    failure_.manager.emit_message = on_message;
  }
  ~JpegReader() { jpeg_destroy_decompress(&info_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  /// Reads up to the first scan.
  void open(std::span<const std::uint8_t> bytes) {
    guard([&] {
      jpeg_create_decompress(&info_);
      progress_.progress_monitor = on_progress;
      info_.progress = &progress_;
      jpeg_save_markers(&info_, JPEG_APP0 + 1, kMarkerBytes);
      jpeg_mem_src(&info_, bytes.data(), static_cast<unsigned long>(bytes.size()));
      jpeg_read_header(&info_, TRUE);
    });
  }

  const jpeg_decompress_struct& info() const { return info_; }

  /// Grey and all kinds of RGB become RGB; CMYK and YCCK stay four inks.
  void choose_colours() {
    bool inks = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    if (info_.jpeg_color_space == JCS_UNKNOWN) {
      CONVOY_FAIL(data, "damaged JPEG: {} colour components, 1, 3 or 4 expected",
                  info_.num_components);
    }
    info_.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  }

  /// Room for the coefficients of all scans (2 bytes for each of up to 4 components) and tables.
  void limit_memory() {
    long pixels = static_cast<long>(info_.image_width) * static_cast<long>(info_.image_height);
    info_.mem->max_memory_to_use = (64L << 20) + 16 * pixels;
  }

  void start() {
    guard([&] { jpeg_start_decompress(&info_); });
  }

  /// Before start(): `shrink` x `shrink` pixels of the file become one.
  void shrink(int shrink) {
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(shrink);
  }

  /// After start(): rows hold the columns from..from+count-1 alone; both are widened to whole
  /// blocks.
  void keep_columns(unsigned& from, unsigned& count) {
    guard([&] { jpeg_crop_scanline(&info_, &from, &count); });
  }

  void skip_rows(unsigned count) {
    guard([&] { jpeg_skip_scanlines(&info_, count); });
  }

  void read_row(std::uint8_t* out) {
    guard([&] {
      JSAMPROW rows[1] = {out};
      while (jpeg_read_scanlines(&info_, rows, 1) == 0) {
      }
    });
  }

  /// Reads up to the end marker, so that a file without one is found.
  void finish() {
    guard([&] { jpeg_finish_decompress(&info_); });
  }

  bool rotated() const {
    constexpr char kExif[] = "Exif\0";  // and the literal's own zero: six bytes
    for (auto* m = info_.marker_list; m != nullptr; m = m->next) {
      if (m->data_length < 6 || std::memcmp(m->data, kExif, 6) != 0) continue;
      return exif_orientation({m->data + 6, m->data_length - 6}) != 1;
    }
    return false;
  }

 private:
  template <class Call>
  void guard(const Call& call) {
    if (setjmp(failure_.jump) != 0) {
      CONVOY_FAIL(data, "damaged JPEG: {}", static_cast<const char*>(failure_.text));
    }
    call();
  }

  jpeg_decompress_struct info_{};
  Failure failure_{};
  jpeg_progress_mgr progress_{};
};

/// a * b / 255, rounded, as Pillow does it.
int scaled(int a, int b) {
  int v = a * b + 128;
  return ((v >> 8) + v) >> 8;
}

/// Inks to light. Adobe's files store 255 for "no ink".
void inks_to_rgb(const std::uint8_t* inks, int width, bool adobe, std::uint8_t* out) {
  for (int x = 0; x < width; ++x, inks += 4, out += kChannels) {
    int white = adobe ? inks[3] : 255 - inks[3];
    for (int c = 0; c < kChannels; ++c) {
      int ink = adobe ? 255 - inks[c] : inks[c];
      out[c] = static_cast<std::uint8_t>(std::clamp(white - scaled(ink, white), 0, 255));
    }
  }
}

void check_claim(std::uint64_t pixels, std::size_t bytes) {
  if (pixels / kMostPixelsPerByte > bytes) {
    CONVOY_FAIL(data, "damaged JPEG: {} bytes cannot hold the {} pixels of its header", bytes,
                pixels);
  }
}

void read_rows(JpegReader& reader, Image& image) {
  bool inks = reader.info().out_color_space == JCS_CMYK;
  bool adobe = reader.info().saw_Adobe_marker != 0;
  std::vector<std::uint8_t> line(inks ? static_cast<std::size_t>(image.width) * 4 : 0);
  for (int y = 0; y < image.height; ++y) {
    std::uint8_t* out = image.pixels.data() + std::int64_t{y} * image.width * kChannels;
    reader.read_row(inks ? line.data() : out);
    if (inks) inks_to_rgb(line.data(), image.width, adobe, out);
  }
}

/// Reads up to the first pixel, which is not decoded yet.
void open_checked(JpegReader& reader, std::span<const std::uint8_t> bytes,
                  std::int64_t max_pixels) {
  reader.open(bytes);
  std::uint64_t width = reader.info().image_width;
  std::uint64_t height = reader.info().image_height;
  check_sides(width, height, max_pixels);
  if (!reader.info().arith_code) check_claim(width * height, bytes.size());
  reader.choose_colours();
  reader.limit_memory();
}

Image empty_image(const JpegReader& reader, unsigned width, unsigned height) {
  Image image{static_cast<int>(width), static_cast<int>(height), {}, reader.rotated()};
  image.pixels.resize(std::size_t{width} * height * kChannels);
  return image;
}

Image read_whole(JpegReader& reader) {
  reader.start();
  Image image = empty_image(reader, reader.info().output_width, reader.info().output_height);
  read_rows(reader, image);
  reader.finish();
  return image;
}

/// The most that both sides of `box` may be divided by and still be `least` pixels.
int shrink_for(const CropBox& box, int least) {
  int shrink = 8;
  while (shrink > 1 && std::min(box.width, box.height) / shrink < std::max(1, least)) shrink /= 2;
  return shrink;
}

/// Pixels around a part that its own pixels depend on: colours are interpolated across borders of
/// blocks, of which the largest have 32 pixels.
constexpr int kBorder = 32;

/// first..end-1 of an axis of `size` decoded pixels: those of the box, its border, and no more.
struct Range {
  Range(int from, int length, int shrink, unsigned size)
      : first(static_cast<unsigned>(std::max(0, from / shrink - kBorder))),
        end(std::min(size, static_cast<unsigned>((from + length) / shrink + 1 + kBorder))) {}
  unsigned first, end;
};

ImagePart read_part(JpegReader& reader, const CropBox& box, int shrink) {
  reader.shrink(shrink);
  reader.start();
  const unsigned height = reader.info().output_height;
  Range columns(box.x, box.width, shrink, reader.info().output_width);
  const Range rows(box.y, box.height, shrink, height);
  unsigned width = columns.end - columns.first;
  reader.keep_columns(columns.first, width);
  ImagePart part{empty_image(reader, width, rows.end - rows.first), box,
                 static_cast<int>(columns.first) * shrink, static_cast<int>(rows.first) * shrink,
                 shrink};
  if (rows.first > 0) reader.skip_rows(rows.first);
  read_rows(reader, part.image);
  if (rows.end < height) {  // the last row is read: to skip it would be to leave the rest unread
    std::vector<std::uint8_t> last(std::size_t{width} * kChannels);
    if (rows.end + 1 < height) reader.skip_rows(height - rows.end - 1);
    reader.read_row(last.data());
  }
  reader.finish();
  return part;
}

}  // namespace

Image decode_jpeg(std::span<const std::uint8_t> bytes, std::int64_t max_pixels) {
  JpegReader reader;
  open_checked(reader, bytes, max_pixels);
  return read_whole(reader);
}

ImagePart decode_jpeg_part(std::span<const std::uint8_t> bytes, std::int64_t max_pixels,
                           const PartWish& wish) {
  JpegReader reader;
  open_checked(reader, bytes, max_pixels);
  if (reader.info().out_color_space == JCS_CMYK) return part_of(read_whole(reader), wish);
  const CropBox box = wish.choose(static_cast<int>(reader.info().image_width),
                                  static_cast<int>(reader.info().image_height));
  return read_part(reader, box, shrink_for(box, wish.least_side));
}

std::string jpeg_version() {
  return "libjpeg-turbo " CONVOY_TEXT(LIBJPEG_TURBO_VERSION);
}

}  // namespace convoy
