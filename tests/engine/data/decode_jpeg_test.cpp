#include "engine/data/decode_jpeg.h"

#include <cstdlib>

#include "engine/data/decode_image.h"
#include "engine/data/exif.h"
#include "tests/engine/data/data_files.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

struct Difference {
  double mean = 0;
  int most = 0;
};

Difference difference(const Bytes& a, const Bytes& b) {
  REQUIRE(a.size() == b.size());
  Difference d;
  for (std::size_t i = 0; i < a.size(); ++i) {
    int v = std::abs(int{a[i]} - int{b[i]});
    d.mean += v / static_cast<double>(a.size());
    d.most = std::max(d.most, v);
  }
  return d;
}

/// Where the entropy-coded data of the first scan begin.
std::size_t scan_data(const Bytes& file) {
  for (std::size_t i = 2; i + 4 <= file.size();) {
    std::size_t length = file[i + 2] * 256u + file[i + 3];
    if (file[i + 1] == 0xDA) return i + 2 + length;
    i += 2 + length;
  }
  throw std::runtime_error("no scan");
}

Bytes cut(Bytes bytes, std::size_t size) {
  bytes.resize(size);
  return bytes;
}

}  // namespace

TEST_CASE("jpeg: kinds of files as Pillow decodes them") {
  auto lines = fixture_lines("decode.txt");
  REQUIRE(lines.size() == 10);
  for (const auto& line : lines) {
    Image image = decode_image(from_hex(line[3]));
    INFO(line[0]);
    CHECK(image.width == std::stoi(line[1]));
    CHECK(image.height == std::stoi(line[2]));
    Difference d = difference(image.pixels, from_hex(line[4]));
    CHECK(d.mean <= 2);
    CHECK(d.most <= 6);
  }
}

TEST_CASE("jpeg: grey is repeated") {
  testing::JpegOptions options;
  options.grey = true;
  Image image = decode_image(testing::make_jpeg(testing::test_image(20, 10), options));
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    REQUIRE(image.pixels[i] == image.pixels[i + 1]);
    REQUIRE(image.pixels[i] == image.pixels[i + 2]);
  }
}

TEST_CASE("jpeg: inks become RGB, with and without Adobe's inversion") {
  // Cyan 200, magenta 100, yellow 0, black 51 of 255: (255-51) * (255-ink) / 255 = 44, 124, 204.
  Bytes plain;
  Bytes inverted;
  for (int i = 0; i < 64; ++i) {
    for (int ink : {200, 100, 0, 51}) {
      plain.push_back(static_cast<std::uint8_t>(ink));
      inverted.push_back(static_cast<std::uint8_t>(255 - ink));
    }
  }
  Bytes expected = testing::plain_image(8, 8, 44, 124, 204).pixels;
  auto decoded = [](const Bytes& inks, bool ycck, bool adobe) {
    return decode_image(testing::make_cmyk_jpeg(8, 8, inks, ycck, adobe)).pixels;
  };
  CHECK(difference(decoded(plain, false, false), expected).most <= 2);
  CHECK(difference(decoded(inverted, false, true), expected).most <= 2);
  CHECK(difference(decoded(inverted, true, true), expected).most <= 3);
}

TEST_CASE("jpeg: a rotation is seen, pixels stay as stored") {
  Image stored = testing::plain_image(48, 32, 255, 0, 0);
  for (int y = 0; y < 32; ++y) {
    for (int x = 24; x < 48; ++x) {
      stored.pixels[(y * 48 + x) * 3] = 0;
      stored.pixels[(y * 48 + x) * 3 + 2] = 255;
    }
  }
  testing::JpegOptions options;
  options.exif = testing::exif_block(6);
  Image image = decode_image(testing::make_jpeg(stored, options));
  CHECK(image.rotated);
  CHECK(image.width == 48);
  CHECK(image.height == 32);
  CHECK(difference(image.pixels, stored.pixels).most <= 4);
  options.exif = testing::exif_block(1);
  CHECK_FALSE(decode_image(testing::make_jpeg(stored, options)).rotated);
}

TEST_CASE("jpeg: no cut of an EXIF block rejects the image") {
  Bytes block = testing::exif_block(6);
  for (std::size_t size = 1; size < block.size(); ++size) {
    testing::JpegOptions options;
    options.exif = cut(block, size);
    CHECK(decode_image(testing::make_jpeg(testing::test_image(8, 8), options)).width == 8);
  }
}

TEST_CASE("exif: both byte orders, and nonsense") {
  Bytes little = testing::exif_block(8);
  CHECK(exif_orientation(little) == 8);
  Bytes big = {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 3, 0, 0};
  CHECK(exif_orientation(big) == 3);
  CHECK(exif_orientation(cut(big, 19)) == 1);
  CHECK(exif_orientation(testing::exif_block(9)) == 1);
  CHECK(exif_orientation(testing::exif_block(0)) == 1);
  CHECK(exif_orientation({}) == 1);
  little[4] = little[5] = little[6] = little[7] = 0xFF;  // directory beyond the end
  CHECK(exif_orientation(little) == 1);
}

TEST_CASE("jpeg: every kind of damage is found") {
  Bytes file = testing::make_jpeg(testing::test_image(64, 48));
  std::size_t data = scan_data(file);
  auto fails = [](const Bytes& bytes, std::string_view reason) {
    expect_error(ErrorKind::data, {reason}, [&] { decode_image(bytes); });
  };
  fails(cut(file, file.size() * 6 / 10), "Premature end");
  fails(cut(file, data), "Premature end");
  fails(cut(file, file.size() - 2), "Premature end");  // only the end marker is missing
  fails(cut(file, 10), "Premature end");
  fails({}, "0 bytes");
  Bytes marker = file;
  marker[data + 20] = 0xFF;
  marker[data + 21] = 0xD0;  // a restart marker where none belongs
  fails(marker, "damaged JPEG");
  CHECK(decode_image(file).width == 64);
}

TEST_CASE("jpeg: sides are held against the limit before anything is allocated") {
  Bytes file = testing::with_sides(testing::make_jpeg(testing::test_image(16, 16)), 65500, 65500);
  expect_error(ErrorKind::data, {"too large", "65500 x 65500", "178956970"},
               [&] { decode_image(file); });
  Bytes small = testing::make_jpeg(testing::test_image(20, 10));
  CHECK(decode_image(small, 200).width == 20);
  expect_error(ErrorKind::data, {"too large", "20 x 10", "limit 199"},
               [&] { decode_image(small, 199); });
}

TEST_CASE("jpeg: a short file cannot claim many pixels") {
  Bytes file = testing::with_sides(testing::make_jpeg(testing::test_image(16, 16)), 13000, 13000);
  expect_error(ErrorKind::data, {"cannot hold", "169000000"}, [&] { decode_image(file); });
}

TEST_CASE("jpeg: more than 100 scans are refused") {
  testing::JpegOptions options;
  options.scan_a_coefficient = true;
  Bytes file = testing::make_jpeg(testing::test_image(16, 16), options);  // 190 scans
  expect_error(ErrorKind::data, {"more than 100 scans"}, [&] { decode_image(file); });
  options.grey = true;  // 64 scans
  CHECK(decode_image(testing::make_jpeg(testing::test_image(16, 16), options)).width == 16);
}

TEST_CASE("image types: what is not read is said") {
  auto fails = [](const std::string& bytes, std::string_view reason) {
    expect_error(ErrorKind::data, {reason},
                 [&] { decode_image(Bytes(bytes.begin(), bytes.end())); });
  };
  fails("GIF89a......", "GIF");
  fails("RIFF1234WEBPVP8 ", "WebP");
  fails(std::string("II*\0abcd", 8), "TIFF");
  fails(std::string("BM\1\0\0\0\0\0\0\0\32\0\0\0\50\0\0\0", 18), "BMP");
  fails("BMW is a car, and this is a text", "no image");
  fails("<!DOCTYPE html>", "no image");
  CHECK(decoder_versions().find("libjpeg-turbo ") == 0);
  CHECK(decoder_versions().find(", libpng 1.") != std::string::npos);
}

TEST_CASE("read_image_file: errors name the file, a type is known by its bytes") {
  TemporaryFolder folder;
  std::string png =
      put_file(folder, "photo.JPEG", testing::make_png(testing::plain_image(3, 2, 1, 2, 3)));
  CHECK(read_image_file(png).pixels == testing::plain_image(3, 2, 1, 2, 3).pixels);
  std::string bad = put_file(folder, "b\xFF\n.png", {});
  expect_error(ErrorKind::data, {"b\\xFF\\x0A.png: 0 bytes"}, [&] { read_image_file(bad); });
  expect_error(ErrorKind::data, {"absent.png", "No such file"},
               [&] { read_image_file(folder / "absent.png"); });
  expect_error(ErrorKind::data, {"expected a file"}, [&] { read_image_file(folder.path()); });
  expect_error(ErrorKind::usage, {"--max-pixels 0"}, [&] { read_image_file(png, 0); });
}
