#include "tests/support/image_files.h"

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include <jpeglib.h>
#include <zlib.h>

namespace convoy::testing {
namespace {

void put_number(Bytes& out, std::uint32_t v) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(v >> shift));
}

void append(Bytes& out, const Bytes& more) {
  for (std::uint8_t byte : more) out.push_back(byte);  // gcc 12 takes insert() here for an overflow
}

Bytes compressed(const Bytes& raw) {
  uLongf size = compressBound(static_cast<uLong>(raw.size()));
  Bytes out(size);
  if (compress(out.data(), &size, raw.data(), static_cast<uLong>(raw.size())) != Z_OK) {
    throw std::runtime_error("compress failed");
  }
  out.resize(size);
  return out;
}

int channels_of(PngColour colour) {
  switch (colour) {
    case PngColour::rgb:
      return 3;
    case PngColour::grey_alpha:
      return 2;
    case PngColour::rgba:
      return 4;
    default:
      return 1;
  }
}

/// The pixels of one row or of one row of a pass: filter byte 0, then the samples' bits.
void put_row(Bytes& raw, const PngOptions& o, const std::vector<int>& samples, int y, int x0,
             int dx) {
  raw.push_back(0);
  std::uint32_t gathered = 0;
  int bits = 0;
  int channels = channels_of(o.colour);
  for (int x = x0; x < o.width; x += dx) {
    for (int c = 0; c < channels; ++c) {
      std::size_t at = (static_cast<std::size_t>(y) * o.width + x) * channels + c;
      gathered = gathered << o.bits | static_cast<std::uint32_t>(samples.at(at));
      for (bits += o.bits; bits >= 8; bits -= 8) {
        raw.push_back(static_cast<std::uint8_t>(gathered >> (bits - 8)));
      }
    }
  }
  if (bits > 0) raw.push_back(static_cast<std::uint8_t>(gathered << (8 - bits)));
}

Bytes raw_rows(const PngOptions& o, const std::vector<int>& samples) {
  struct Pass {
    int x0, y0, dx, dy;
  };
  std::vector<Pass> passes = {{0, 0, 1, 1}};
  if (o.interlaced) {
    passes = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
              {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
  }
  Bytes raw;
  for (const Pass& pass : passes) {
    for (int y = pass.y0; y < o.height && pass.x0 < o.width; y += pass.dy) {
      put_row(raw, o, samples, y, pass.x0, pass.dx);
    }
  }
  return raw;
}

Bytes header(std::uint32_t width, std::uint32_t height, int bits, PngColour colour,
             bool interlaced) {
  Bytes data;
  put_number(data, width);
  put_number(data, height);
  for (int v : {bits, static_cast<int>(colour), 0, 0, interlaced ? 1 : 0}) {
    data.push_back(static_cast<std::uint8_t>(v));
  }
  Bytes out = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  append(out, png_chunk("IHDR", data));
  return out;
}

/// Runs libjpeg's compressor; errors end the test program through libjpeg's own handler.
template <class Setup>
Bytes compress_jpeg(int width, int height, int channels, const Bytes& pixels, const Setup& setup) {
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = channels;
  setup(info);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(pixels.data()) +
                   static_cast<std::size_t>(info.next_scanline) * width * channels;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  Bytes out(buffer, buffer + size);
  std::free(buffer);
  return out;
}

void put_exif(jpeg_compress_struct& info, const Bytes& exif) {
  Bytes data = {'E', 'x', 'i', 'f', 0, 0};
  append(data, exif);
  jpeg_write_marker(&info, JPEG_APP0 + 1, data.data(), static_cast<unsigned>(data.size()));
}

/// A scan for all constant terms, then one for each coefficient of each component.
std::vector<jpeg_scan_info> scan_of_each_coefficient(int channels) {
  std::vector<jpeg_scan_info> scans = {{channels, {0, 1, 2}, 0, 0, 0, 0}};
  for (int c = 0; c < channels; ++c) {
    for (int k = 1; k < DCTSIZE2; ++k) scans.push_back({1, {c}, k, k, 0, 0});
  }
  return scans;
}

}  // namespace

Bytes png_chunk(const std::string& type, const Bytes& data) {
  Bytes typed(type.begin(), type.end());
  append(typed, data);
  Bytes out;
  put_number(out, static_cast<std::uint32_t>(data.size()));
  append(out, typed);
  put_number(out,
             static_cast<std::uint32_t>(crc32(0, typed.data(), static_cast<uInt>(typed.size()))));
  return out;
}

Bytes make_png(const PngOptions& o, const std::vector<int>& samples) {
  Bytes out = header(static_cast<std::uint32_t>(o.width), static_cast<std::uint32_t>(o.height),
                     o.bits, o.colour, o.interlaced);
  if (!o.palette.empty()) append(out, png_chunk("PLTE", o.palette));
  if (!o.transparency.empty()) append(out, png_chunk("tRNS", o.transparency));
  for (const Bytes& chunk : o.chunks) append(out, chunk);
  append(out, png_chunk("IDAT", compressed(raw_rows(o, samples))));
  append(out, png_chunk("IEND", {}));
  return out;
}

Bytes make_png(const Image& image) {
  PngOptions options;
  options.width = image.width;
  options.height = image.height;
  return make_png(options, std::vector<int>(image.pixels.begin(), image.pixels.end()));
}

Bytes make_png_claiming(std::uint32_t width, std::uint32_t height) {
  Bytes out = header(width, height, 1, PngColour::grey, false);
  append(out, png_chunk("IDAT", compressed({0})));
  append(out, png_chunk("IEND", {}));
  return out;
}

Bytes make_jpeg(const Image& image, const JpegOptions& o) {
  Bytes pixels = image.pixels;
  if (o.grey) {
    pixels.clear();
    for (std::size_t i = 0; i < image.pixels.size(); i += kChannels) {
      pixels.push_back(image.pixels[i]);
    }
  }
  int channels = o.grey ? 1 : kChannels;
  std::vector<jpeg_scan_info> scans = scan_of_each_coefficient(channels);
  return compress_jpeg(image.width, image.height, channels, pixels, [&](auto& info) {
    info.in_color_space = o.grey ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, o.quality, TRUE);
    info.comp_info[0].h_samp_factor = o.luma_h;
    info.comp_info[0].v_samp_factor = o.luma_v;
    info.restart_interval = static_cast<unsigned>(o.restart_interval);
    if (o.progressive) jpeg_simple_progression(&info);
    if (o.scan_a_coefficient) {
      info.scan_info = scans.data();
      info.num_scans = static_cast<int>(scans.size());
    }
    jpeg_start_compress(&info, TRUE);
    if (!o.exif.empty()) put_exif(info, o.exif);
  });
}

Bytes with_sides(Bytes file, int width, int height) {
  std::size_t at = 2;
  while (at + 9 <= file.size() && file[at + 1] != 0xC0 && file[at + 1] != 0xC2) {
    at += 2 + file[at + 2] * 256u + file[at + 3];
  }
  for (std::size_t k = 0; k < 2; ++k) {
    file.at(at + 5 + k) = static_cast<std::uint8_t>(height >> (8 - 8 * k));
    file.at(at + 7 + k) = static_cast<std::uint8_t>(width >> (8 - 8 * k));
  }
  return file;
}

Bytes make_cmyk_jpeg(int width, int height, const Bytes& inks, bool ycck, bool adobe_marker) {
  return compress_jpeg(width, height, 4, inks, [&](auto& info) {
    info.in_color_space = JCS_CMYK;
    jpeg_set_defaults(&info);
    jpeg_set_colorspace(&info, ycck ? JCS_YCCK : JCS_CMYK);
    jpeg_set_quality(&info, 100, TRUE);
    for (int c = 0; c < 4; ++c) info.comp_info[c].h_samp_factor = 1;
    for (int c = 0; c < 4; ++c) info.comp_info[c].v_samp_factor = 1;
    info.write_Adobe_marker = adobe_marker ? TRUE : FALSE;
    jpeg_start_compress(&info, TRUE);
  });
}

Bytes exif_block(int orientation) {
  return {'I',  'I', 42, 0, 8, 0, 0, 0,  // header
          1,    0,                       // one entry
          0x12, 1,   3,  0, 1, 0, 0, 0, static_cast<std::uint8_t>(orientation),
          0,    0,   0,  0, 0, 0, 0};
}

Image test_image(int width, int height, int seed) {
  Image image{width, height, {}, false};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < kChannels; ++c) {
        double v = std::sin(0.3 * x + c + seed) * std::cos(0.2 * y - c + 2 * seed);
        image.pixels.push_back(static_cast<std::uint8_t>(127.5 + 120 * v));
      }
    }
  }
  return image;
}

Image plain_image(int width, int height, int red, int green, int blue) {
  Image image{width, height, {}, false};
  for (int i = 0; i < width * height; ++i) {
    for (int v : {red, green, blue}) image.pixels.push_back(static_cast<std::uint8_t>(v));
  }
  return image;
}

}  // namespace convoy::testing
