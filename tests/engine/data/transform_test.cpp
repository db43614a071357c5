#include "engine/data/transform.h"

#include <algorithm>

#include "engine/data/decode_image.h"
#include "engine/data/resize.h"
#include "tests/engine/data/data_files.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using namespace convoy::testing;

namespace {

// Identity on bytes: (p / 255 - 0) / (1 / 255), exact for every byte but for rounding.
constexpr Normalisation kBytes = {{0, 0, 0}, {1 / 255.0f, 1 / 255.0f, 1 / 255.0f}};

/// Back from float planes to interleaved bytes.
Bytes bytes_of_planes(const std::vector<float>& planes) {
  std::size_t plane = planes.size() / 3;
  Bytes out(planes.size());
  for (std::size_t p = 0; p < plane; ++p) {
    for (std::size_t c = 0; c < 3; ++c) {
      out[p * 3 + c] = static_cast<std::uint8_t>(planes[c * plane + p] + 0.5f);
    }
  }
  return out;
}

Bytes eval_bytes(const Image& image, int size, ResizeRule rule) {
  Transform transform({size, kBytes, rule, AugmentRule::none});
  std::vector<float> out(static_cast<std::size_t>(transform.count()));
  transform.eval(image, out.data());
  return bytes_of_planes(out);
}

Bytes train_bytes(const Image& image, int size, AugmentRule rule, std::int64_t id,
                  ResizeRule resize = ResizeRule::stretch) {
  Transform transform({size, kBytes, resize, rule});
  std::vector<float> out(static_cast<std::size_t>(transform.count()));
  transform.train(image, {5, 1, id}, out.data());
  return bytes_of_planes(out);
}

Bytes flipped(const Image& image) {
  Image out = image;
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      for (int c = 0; c < 3; ++c) {
        out.pixels[(y * image.width + x) * 3 + c] =
            image.pixels[(y * image.width + image.width - 1 - x) * 3 + c];
      }
    }
  }
  return out.pixels;
}

}  // namespace

TEST_CASE("transform: an image of the image size is used as it is") {
  Image image = testing::test_image(24, 24);
  CHECK(eval_bytes(image, 24, ResizeRule::centre_crop) == image.pixels);
  CHECK(eval_bytes(image, 24, ResizeRule::stretch) == image.pixels);
}

TEST_CASE("transform: else the shorter side is round(size / 0.875), centre cropped") {
  // size 28: shorter side 32; 40 x 60 becomes 32 x 48; crop at (2, 10).
  Image tall = testing::test_image(40, 60);
  Image whole = resize(tall.view(), 32, 48);
  CHECK(eval_bytes(tall, 28, ResizeRule::centre_crop) ==
        padded_part(whole.view(), {2, 10, 28, 28}).pixels);
  // 61 x 40 becomes 48 x 32 (48.8 cut down); crop at (10, 2).
  Image wide = testing::test_image(61, 40);
  whole = resize(wide.view(), 48, 32);
  CHECK(eval_bytes(wide, 28, ResizeRule::centre_crop) ==
        padded_part(whole.view(), {10, 2, 28, 28}).pixels);
  // size 32: shorter side 37 (36.57); half pixels go to the even side: 2.5 becomes 2.
  Image square = testing::test_image(50, 50);
  whole = resize(square.view(), 37, 37);
  CHECK(eval_bytes(square, 32, ResizeRule::centre_crop) ==
        padded_part(whole.view(), {2, 2, 32, 32}).pixels);
}

TEST_CASE("transform: stretched sets are resized whole") {
  Image image = testing::test_image(28, 28);
  CHECK(eval_bytes(image, 32, ResizeRule::stretch) == resize(image.view(), 32, 32).pixels);
}

TEST_CASE("transform: values and layout are torch's") {
  Image image{2, 1, {0, 128, 255, 51, 102, 204}, false};
  Transform transform({2, kImageNetNormalisation, ResizeRule::stretch, AugmentRule::none});
  std::vector<float> out(static_cast<std::size_t>(transform.count()));
  image.height = 2;
  image.pixels.insert(image.pixels.end(), {1, 2, 3, 4, 5, 6});
  transform.eval(image, out.data());
  auto expected = [](int v, float mean, float deviation) {
    return (static_cast<float>(v) / 255.0f - mean) / deviation;
  };
  CHECK(out[0] == expected(0, 0.485f, 0.229f));
  CHECK(out[1] == expected(51, 0.485f, 0.229f));
  CHECK(out[4] == expected(128, 0.456f, 0.224f));
  CHECK(out[7] == expected(5, 0.456f, 0.224f));
  CHECK(out[8] == expected(255, 0.406f, 0.225f));
  CHECK(std::abs(out[0] - -2.1179039f) < 1e-6f);  // torchvision's Normalize of a black pixel
}

TEST_CASE("transform: training crops, pads and flips as augmentation() says") {
  Image image = testing::test_image(40, 30);
  bool seen[2] = {false, false};
  for (std::int64_t id = 0; id < 12; ++id) {
    Augmentation a = augmentation(AugmentRule::resized_crop, 5, 1, id, 40, 30);
    Image part = padded_part(image.view(), a.box);
    Image expected = resize(part.view(), 16, 16);
    seen[a.flip] = true;
    CHECK(train_bytes(image, 16, AugmentRule::resized_crop, id) ==
          (a.flip ? flipped(expected) : expected.pixels));
  }
  CHECK((seen[0] && seen[1]));
  Image small = testing::test_image(32, 32);
  for (std::int64_t id = 0; id < 12; ++id) {
    Augmentation a = augmentation(AugmentRule::pad_crop_flip, 5, 1, id, 32, 32);
    Image expected = padded_part(small.view(), a.box);
    CHECK(train_bytes(small, 32, AugmentRule::pad_crop_flip, id) ==
          (a.flip ? flipped(expected) : expected.pixels));
  }
  CHECK(train_bytes(image, 20, AugmentRule::none, 0, ResizeRule::centre_crop) ==
        eval_bytes(image, 20, ResizeRule::centre_crop));
}

TEST_CASE("transform: padding is black") {
  Image image = testing::plain_image(2, 2, 9, 9, 9);
  Image part = padded_part(image.view(), {-1, 1, 3, 2});
  CHECK(part.pixels == Bytes{0, 0, 0, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK(padded_part(image.view(), {5, 5, 1, 1}).pixels == Bytes{0, 0, 0});
}

TEST_CASE("transform: one file for predict") {
  TemporaryFolder folder;
  Image image = testing::test_image(40, 60);
  std::string path = put_file(folder, "x.png", testing::make_png(image));
  CHECK(bytes_of_planes(load_image_for_eval(path, 28, kBytes, 10000)) ==
        eval_bytes(image, 28, ResizeRule::centre_crop));
  expect_error(ErrorKind::data, {"x.png: too large", "40 x 60"},
               [&] { load_image_for_eval(path, 28, kBytes, 2399); });
}

TEST_CASE("transform: impossible settings") {
  expect_error(ErrorKind::usage, {"--image-size 0"}, [] {
    Transform({0, kBytes, ResizeRule::stretch, AugmentRule::none});
  });
  expect_error(ErrorKind::usage, {"deviation 0"}, [] {
    Transform({8, {{0, 0, 0}, {1, 1, 0}}, ResizeRule::stretch, AugmentRule::none});
  });
}

TEST_CASE("transform: extreme sides end in small results") {
  Image thin = testing::plain_image(1, 3000, 50, 60, 70);
  CHECK(eval_bytes(thin, 8, ResizeRule::centre_crop) ==
        testing::plain_image(8, 8, 50, 60, 70).pixels);
  CHECK(train_bytes(thin, 8, AugmentRule::resized_crop, 0) ==
        testing::plain_image(8, 8, 50, 60, 70).pixels);
}
