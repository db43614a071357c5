// Parts of images: the pixels of the whole, and no damage passed over.
#include <cstdlib>
#include <random>

#include "engine/data/augment.h"
#include "engine/data/decode_image.h"
#include "engine/data/image_folder.h"
#include "engine/data/resize.h"
#include "engine/data/transform.h"
#include "tests/engine/data/data_files.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

PartWish wish(const CropBox& box, int least = 1 << 20) {
  return {[box](int, int) { return box; }, least};
}

// A picture with an edge at every pixel, so that a border that is interpolated wrongly shows.
Image noise(int width, int height) {
  std::mt19937 random(7);
  Image image = test_image(width, height);
  for (std::uint8_t& value : image.pixels) value = static_cast<std::uint8_t>(random());
  return image;
}

Bytes sampled(const Image& image, int luma_h, int luma_v, bool progressive = false) {
  JpegOptions options;
  options.luma_h = luma_h;
  options.luma_v = luma_v;
  options.progressive = progressive;
  return make_jpeg(image, options);
}

Bytes pixels_of(const ImagePart& part) {
  return padded_part(part.image.view(),
                     {part.box.x - part.x, part.box.y - part.y, part.box.width, part.box.height})
      .pixels;
}

std::vector<CropBox> boxes(int width, int height) {
  std::vector<CropBox> result = {{0, 0, width, height},
                                 {0, 0, 1, 1},
                                 {width - 1, height - 1, 1, 1},
                                 {width / 2, 0, 3, height},
                                 {0, height / 2, width, 2},
                                 {37, 41, 50, 33},
                                 {48, 48, 16, 16},
                                 {47, 49, 18, 15},
                                 {width - 33, 64, 33, height - 64}};
  return result;
}

double mean_difference(const Bytes& a, const Bytes& b) {
  REQUIRE(a.size() == b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(int{a[i]} - int{b[i]});
  return sum / static_cast<double>(a.size());
}

}  // namespace

TEST_CASE("jpeg parts: the pixels of the whole image") {
  constexpr int kWidth = 203, kHeight = 149;
  for (int h : {1, 2, 4}) {
    for (int v : {1, 2}) {
      for (bool progressive : {false, true}) {
        const Bytes file = sampled(noise(kWidth, kHeight), h, v, progressive);
        const Image whole = decode_image(file);
        for (const CropBox& box : boxes(kWidth, kHeight)) {
          CAPTURE(h, v, progressive, box.x, box.y, box.width, box.height);
          const ImagePart part = decode_image_part(file, kDefaultMaxPixels, wish(box));
          CHECK(part.shrink == 1);
          CHECK(pixels_of(part) == padded_part(whole.view(), box).pixels);
        }
      }
    }
  }
}

TEST_CASE("jpeg parts: grey, inks, and what is no JPEG") {
  const CropBox box{20, 8, 30, 40};
  JpegOptions grey;
  grey.grey = true;
  Bytes inks(std::size_t{64} * 64 * 4);
  for (std::size_t i = 0; i < inks.size(); ++i) inks[i] = static_cast<std::uint8_t>(i * 7 / 5);
  for (const Bytes& file : {make_jpeg(noise(64, 64), grey),
                            make_cmyk_jpeg(64, 64, inks, true, true), make_png(noise(64, 64))}) {
    CHECK(pixels_of(decode_image_part(file, kDefaultMaxPixels, wish(box))) ==
          padded_part(decode_image(file).view(), box).pixels);
  }
}

TEST_CASE("jpeg parts: damage outside of the part is found") {
  const CropBox box{8, 8, 16, 16};
  Bytes file = make_jpeg(test_image(200, 400));
  const Bytes whole = file;
  const auto fails = [&](const Bytes& bytes) {
    expect_error(ErrorKind::data, {"Premature end"}, [&] { decode_image(bytes); });
    expect_error(ErrorKind::data, {"Premature end"},
                 [&] { decode_image_part(bytes, kDefaultMaxPixels, wish(box)); });
  };
  for (std::size_t lost : {std::size_t{2}, std::size_t{40}, file.size() / 3}) {
    file.resize(whole.size() - lost);
    fails(file);
  }
  expect_error(ErrorKind::data, {"too large", "limit 79999"},
               [&] { decode_image_part(whole, 79999, wish(box)); });
}

TEST_CASE("jpeg parts: large ones are halved while they stay large enough") {
  const Image image = test_image(640, 480);
  const Bytes file = make_jpeg(image);
  const auto shrink = [&](const CropBox& box, int least) {
    return decode_image_part(file, kDefaultMaxPixels, wish(box, least)).shrink;
  };
  CHECK(shrink({0, 0, 640, 480}, 241) == 1);
  CHECK(shrink({0, 0, 640, 480}, 240) == 2);
  CHECK(shrink({10, 10, 600, 256}, 64) == 4);
  CHECK(shrink({10, 10, 600, 256}, 8) == 8);
  CHECK(shrink({10, 10, 1, 256}, 1) == 1);
}

TEST_CASE("folders: training decodes what a crop needs, with the values of the whole image") {
  TemporaryFolder folder;
  const Image large = test_image(900, 700);
  put_file(folder, "train/a/0.jpg", sampled(noise(120, 90), 2, 2));
  put_file(folder, "train/a/1.jpg", sampled(large, 2, 2));
  put_png(folder, "train/a/2.png", 60, 77);
  const auto set = open_image_folder(folder.path(), kDefaultMaxPixels).train;
  const Transform transform({32,
                             {{0, 0, 0}, {1 / 255.0f, 1 / 255.0f, 1 / 255.0f}},
                             ResizeRule::centre_crop,
                             AugmentRule::resized_crop});
  std::vector<float> part(static_cast<std::size_t>(transform.count())), whole(part.size());
  for (std::int64_t epoch = 0; epoch < 6; ++epoch) {
    for (std::int64_t id = 0; id < 3; ++id) {
      transform.train(*set, {5, epoch, id}, part.data());
      transform.train(set->read(id), {5, epoch, id}, whole.data());
      if (id != 1) {
        CHECK((part == whole));
        continue;
      }
      const auto bytes = [](const std::vector<float>& values) {
        return Bytes(values.begin(), values.end());
      };
      CHECK(mean_difference(bytes(part), bytes(whole)) < 2);  // of 255
    }
  }
}
