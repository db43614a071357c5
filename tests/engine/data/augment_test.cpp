#include "engine/data/augment.h"

#include <set>
#include <tuple>

#include "tests/support/catch.h"

using namespace convoy;

namespace {

using Key = std::tuple<int, int, int, int, bool>;

Key key_of(const Augmentation& a) {
  return {a.box.x, a.box.y, a.box.width, a.box.height, a.flip};
}

}  // namespace

TEST_CASE("augment: 32 copies of one image are varied in 32 ways") {
  std::set<Key> seen;
  for (int image = 0; image < 32; ++image) {
    seen.insert(key_of(augmentation(AugmentRule::resized_crop, 1, 0, image, 500, 375)));
  }
  CHECK(seen.size() == 32);
}

TEST_CASE("augment: seed, epoch and image decide, nothing else") {
  auto at = [](std::uint64_t seed, std::int64_t epoch, std::int64_t image) {
    return augmentation(AugmentRule::resized_crop, seed, epoch, image, 500, 375);
  };
  CHECK(at(1, 2, 3) == at(1, 2, 3));
  CHECK_FALSE(at(1, 2, 3) == at(2, 2, 3));
  CHECK_FALSE(at(1, 2, 3) == at(1, 3, 3));
  CHECK_FALSE(at(1, 2, 3) == at(1, 2, 4));
}

TEST_CASE("augment: resized crops stay inside and keep to area and ratio") {
  int flips = 0;
  double area = 0;
  for (int image = 0; image < 2000; ++image) {
    Augmentation a = augmentation(AugmentRule::resized_crop, 7, 0, image, 400, 300);
    CropBox b = a.box;
    REQUIRE((b.x >= 0 && b.y >= 0 && b.x + b.width <= 400 && b.y + b.height <= 300));
    double share = b.width * static_cast<double>(b.height) / (400 * 300);
    double ratio = static_cast<double>(b.width) / b.height;
    REQUIRE((share > 0.079 && share <= 1.0));
    REQUIRE((ratio > 0.74 && ratio < 1.35));
    flips += a.flip ? 1 : 0;
    area += share;
  }
  CHECK(std::abs(flips - 1000) < 112);  // deviation 22.4
  // fixtures/make_crop_share.py: mean 0.4332, deviation 0.2166; five deviations of the mean.
  CHECK(std::abs(area / 2000 - 0.4332) < 0.025);
}

TEST_CASE("augment: the fallback for narrow images is the largest centred part") {
  for (int image = 0; image < 20; ++image) {
    CHECK(augmentation(AugmentRule::resized_crop, 1, 0, image, 1000, 10).box ==
          CropBox{493, 0, 13, 10});
    CHECK(augmentation(AugmentRule::resized_crop, 1, 0, image, 9, 3000).box ==
          CropBox{0, 1494, 9, 12});
  }
  CropBox one = augmentation(AugmentRule::resized_crop, 1, 0, 0, 1, 1).box;
  CHECK(one == CropBox{0, 0, 1, 1});
}

TEST_CASE("augment: padded crops reach all 81 places, other rules keep the image") {
  std::set<std::pair<int, int>> places;
  for (int image = 0; image < 2000; ++image) {
    CropBox b = augmentation(AugmentRule::pad_crop_flip, 1, 0, image, 32, 32).box;
    REQUIRE((b.width == 32 && b.height == 32));
    places.insert({b.x, b.y});
  }
  CHECK(places.size() == 81);
  CHECK(places.begin()->first == -4);
  CHECK(places.rbegin()->first == 4);
  CHECK(augmentation(AugmentRule::flip, 1, 0, 0, 28, 27).box == CropBox{0, 0, 28, 27});
  CHECK(augmentation(AugmentRule::none, 1, 0, 0, 28, 27) ==
        Augmentation{CropBox{0, 0, 28, 27}, false});
}
