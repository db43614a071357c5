#include "engine/data/decode_png.h"

#include <numeric>

#include "engine/data/decode_image.h"
#include "tests/engine/data/data_files.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using namespace convoy::testing;
using testing::PngColour;
using testing::PngOptions;

namespace {

PngOptions options_of(int width, int height, int bits, PngColour colour) {
  PngOptions options;
  options.width = width;
  options.height = height;
  options.bits = bits;
  options.colour = colour;
  return options;
}

/// The first channel of each pixel, after checking that the others are equal to it.
std::vector<int> grey_values(const Image& image) {
  std::vector<int> values;
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    REQUIRE(image.pixels[i] == image.pixels[i + 1]);
    REQUIRE(image.pixels[i] == image.pixels[i + 2]);
    values.push_back(image.pixels[i]);
  }
  return values;
}

}  // namespace

TEST_CASE("png: 16 bits are scaled, not clipped or cut") {
  std::vector<int> samples = {0x1234, 0x8000, 0xFFFF, 0, 127, 128, 129, 65407};
  Image image = decode_image(testing::make_png(options_of(4, 2, 16, PngColour::grey), samples));
  std::vector<int> expected;
  for (int v : samples) expected.push_back((v + 128) / 257);
  CHECK(expected[0] == 18);
  CHECK(expected[1] == 128);
  CHECK(expected[2] == 255);
  CHECK(grey_values(image) == expected);
}

TEST_CASE("png: all 65536 values of 16 bits") {
  std::vector<int> samples(65536);
  std::iota(samples.begin(), samples.end(), 0);
  std::vector<int> values = grey_values(
      decode_image(testing::make_png(options_of(256, 256, 16, PngColour::grey), samples)));
  int wrong = 0;
  for (int v = 0; v < 65536; ++v) wrong += values[v] == (v + 128) / 257 ? 0 : 1;
  CHECK(wrong == 0);
}

TEST_CASE("png: a palette is expanded, its transparency dropped") {
  PngOptions options = options_of(4, 1, 2, PngColour::palette);
  options.palette = {1, 2, 3, 40, 50, 60, 255, 0, 0, 9, 9, 9};
  options.transparency = {0, 128};
  Image image = decode_image(testing::make_png(options, {0, 1, 2, 3}));
  CHECK(image.pixels == Bytes{1, 2, 3, 40, 50, 60, 255, 0, 0, 9, 9, 9});
}

TEST_CASE("png: alpha is dropped, the stored colour stays") {
  Image rgba =
      decode_image(testing::make_png(options_of(1, 1, 8, PngColour::rgba), {200, 100, 50, 0}));
  CHECK(rgba.pixels == Bytes{200, 100, 50});
  Image grey =
      decode_image(testing::make_png(options_of(2, 1, 8, PngColour::grey_alpha), {70, 0, 80, 255}));
  CHECK(grey_values(grey) == std::vector<int>{70, 80});
  PngOptions keyed = options_of(2, 1, 8, PngColour::rgb);
  keyed.transparency = {0, 1, 0, 2, 0, 3};
  CHECK(decode_image(testing::make_png(keyed, {1, 2, 3, 4, 5, 6})).pixels ==
        Bytes{1, 2, 3, 4, 5, 6});
}

TEST_CASE("png: few bits are spread over 0 to 255") {
  auto grey = [](int bits, const std::vector<int>& samples) {
    int width = static_cast<int>(samples.size());
    return grey_values(
        decode_image(testing::make_png(options_of(width, 1, bits, PngColour::grey), samples)));
  };
  CHECK(grey(1, {0, 1, 1}) == std::vector<int>{0, 255, 255});
  CHECK(grey(2, {0, 1, 2, 3}) == std::vector<int>{0, 85, 170, 255});
  CHECK(grey(4, {0, 1, 15}) == std::vector<int>{0, 17, 255});
}

TEST_CASE("png: interlaced or not, the same pixels") {
  for (auto [width, height] : {std::pair{1, 1}, {3, 5}, {8, 8}, {17, 33}}) {
    Image image = testing::test_image(width, height);
    PngOptions options = options_of(width, height, 8, PngColour::rgb);
    options.interlaced = true;
    std::vector<int> samples(image.pixels.begin(), image.pixels.end());
    CHECK(decode_image(testing::make_png(options, samples)).pixels == image.pixels);
    CHECK(decode_image(testing::make_png(image)).pixels == image.pixels);
  }
}

TEST_CASE("png: profiles, gamma and texts change nothing, broken ones too") {
  PngOptions options = options_of(1, 1, 8, PngColour::rgb);
  Bytes gamma;
  put_number(gamma, 20000);
  options.chunks = {testing::png_chunk("gAMA", gamma), testing::png_chunk("iCCP", {1, 2, 3}),
                    testing::png_chunk("tEXt", {}),    testing::png_chunk("sRGB", {9, 9, 9, 9}),
                    testing::png_chunk("pHYs", {1}),   testing::png_chunk("eXIf", {'I'})};
  Image image = decode_image(testing::make_png(options, {10, 20, 30}));
  CHECK(image.pixels == Bytes{10, 20, 30});
  CHECK_FALSE(image.rotated);
}

TEST_CASE("png: a rotation in its EXIF chunk is seen") {
  PngOptions options = options_of(2, 1, 8, PngColour::grey);
  options.chunks = {testing::png_chunk("eXIf", testing::exif_block(6))};
  Image image = decode_image(testing::make_png(options, {1, 2}));
  CHECK(image.rotated);
  CHECK(image.width == 2);
}

TEST_CASE("png: sides are held against the limit before anything is allocated") {
  expect_error(ErrorKind::data, {"too large", "30000 x 30000", "178956970"},
               [] { decode_image(testing::make_png_claiming(30000, 30000)); });
  expect_error(ErrorKind::data, {"too large", "2147483647 x 2147483647"},
               [] { decode_image(testing::make_png_claiming(2147483647u, 2147483647u)); });
  expect_error(ErrorKind::data, {"too large", "4294967295 x 1"},
               [] { decode_image(testing::make_png_claiming(4294967295u, 1)); });
  expect_error(ErrorKind::data, {"0 x 5"}, [] { decode_image(testing::make_png_claiming(0, 5)); });
  Bytes small = testing::make_png(testing::test_image(20, 10));
  CHECK(decode_image(small, 200).width == 20);
  expect_error(ErrorKind::data, {"too large", "20 x 10", "limit 199"},
               [&] { decode_image(small, 199); });
}

TEST_CASE("png: a short file cannot claim many pixels") {
  expect_error(ErrorKind::data, {"cannot hold", "169000000"},
               [] { decode_image(testing::make_png_claiming(13000, 13000)); });
}

TEST_CASE("png: every kind of damage is found") {
  Bytes file = testing::make_png(testing::test_image(30, 20));
  auto fails = [](const Bytes& bytes, std::string_view reason) {
    expect_error(ErrorKind::data, {reason}, [&] { decode_image(bytes); });
  };
  Bytes wrong_checksum = file;
  wrong_checksum[file.size() - 12 - 1] ^= 1;  // the last byte of IDAT's checksum
  fails(wrong_checksum, "CRC");
  for (std::size_t size : {std::size_t{20}, std::size_t{40}, file.size() / 2, file.size() - 1}) {
    fails(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)), "damaged PNG");
  }
  PngOptions index = options_of(2, 1, 8, PngColour::palette);
  index.palette = {1, 2, 3};
  fails(testing::make_png(index, {0, 200}), "palette index");
  fails(testing::make_png(options_of(1, 1, 8, PngColour::palette), {0}), "damaged PNG");
  PngOptions unknown = options_of(1, 1, 8, PngColour::rgb);
  unknown.chunks = {testing::png_chunk("ABCD", {1})};  // critical, and not known
  fails(testing::make_png(unknown, {1, 2, 3}), "unhandled critical chunk");
}
