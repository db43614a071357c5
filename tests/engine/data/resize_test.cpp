#include "engine/data/resize.h"

#include "engine/data/transform.h"
#include "tests/engine/data/data_files.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

/// The formula of make_image_fixtures.py.
Image formula_image(int width, int height) {
  Image image{width, height, {}, false};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < kChannels; ++c) {
        int v = x * 37 + y * 91 + c * 53 + x * y * 7 + x * x * 3;
        image.pixels.push_back(static_cast<std::uint8_t>(v % 256));
      }
    }
  }
  return image;
}

}  // namespace

TEST_CASE("resize: Pillow's bytes") {
  auto lines = fixture_lines("resize.txt");
  REQUIRE(lines.size() == 14);
  for (const auto& line : lines) {
    Image source = formula_image(std::stoi(line[0]), std::stoi(line[1]));
    ResizeBox box{std::stof(line[2]), std::stof(line[3]), std::stof(line[4]), std::stof(line[5])};
    Image result = resize(source.view(), std::stoi(line[6]), std::stoi(line[7]), box);
    INFO(line[0] << " x " << line[1] << " to " << line[6] << " x " << line[7]);
    CHECK(result.pixels == from_hex(line[8]));
  }
}

TEST_CASE("resize: a window is what resizing and cropping give") {
  Image source = formula_image(23, 17);
  Image whole = resize(source.view(), 9, 31);
  Image part = resize_window(source.view(), {9, 31}, {2, 5, 4, 20});
  Image cropped = padded_part(whole.view(), {2, 5, 4, 20});
  CHECK(part.pixels == cropped.pixels);
}

TEST_CASE("resize: a cropped view is an image of its own") {
  Image source = formula_image(23, 17);
  Image copy = padded_part(source.view(), {3, 4, 10, 8});
  CHECK(resize(source.view().crop(3, 4, 10, 8), 5, 5).pixels == resize(copy.view(), 5, 5).pixels);
}

TEST_CASE("resize: a window of a huge result needs little") {
  Image thin = testing::plain_image(1, 5000, 7, 8, 9);
  Image part = resize_window(thin.view(), {256, 256 * 5000}, {16, 600000, 224, 224});
  CHECK(part.pixels == testing::plain_image(224, 224, 7, 8, 9).pixels);
}

TEST_CASE("resize: impossible sizes") {
  Image image = testing::plain_image(4, 4, 1, 2, 3);
  expect_error(ErrorKind::usage, {"0 x 3"}, [&] { resize(image.view(), 0, 3); });
  expect_error(ErrorKind::usage, {"box (0, 0, 5, 4)", "4 x 4"}, [&] {
    resize(image.view(), 2, 2, {0, 0, 5, 4});
  });
  expect_error(ErrorKind::usage, {"window of 3 x 3 at (2, 0)", "4 x 4"}, [&] {
    resize_window(image.view(), {4, 4}, {2, 0, 3, 3});
  });
}
