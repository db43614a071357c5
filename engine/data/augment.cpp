#include "engine/data/augment.h"

#include <algorithm>
#include <cmath>

#include "engine/data/random.h"

namespace convoy {
namespace {

// torchvision's RandomResizedCrop: part of the area, width / height, tries before the fallback.
constexpr double kLeastArea = 0.08;
constexpr double kLeastRatio = 3.0 / 4.0;
constexpr double kMostRatio = 4.0 / 3.0;
constexpr int kTries = 10;

int rounded(double v) {
  return static_cast<int>(std::nearbyint(v));
}

/// The largest centred part whose ratio lies within the bounds.
CropBox centred_crop(int width, int height) {
  double ratio = static_cast<double>(width) / height;
  int w = width;
  int h = height;
  if (ratio < kLeastRatio) h = std::max(1, rounded(width / kLeastRatio));
  if (ratio > kMostRatio) w = std::max(1, rounded(height * kMostRatio));
  return {(width - w) / 2, (height - h) / 2, w, h};
}

CropBox resized_crop(DataRandom& random, int width, int height) {
  double area = static_cast<double>(width) * height;
  for (int i = 0; i < kTries; ++i) {
    double target = area * random.uniform(kLeastArea, 1.0);
    double ratio = std::exp(random.uniform(std::log(kLeastRatio), std::log(kMostRatio)));
    int w = rounded(std::sqrt(target * ratio));
    int h = rounded(std::sqrt(target / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    int y = static_cast<int>(random.below(height - h + 1));
    int x = static_cast<int>(random.below(width - w + 1));
    return {x, y, w, h};
  }
  return centred_crop(width, height);
}

CropBox padded_crop(DataRandom& random, int width, int height) {
  int y = static_cast<int>(random.below(2 * kPadding + 1)) - kPadding;
  int x = static_cast<int>(random.below(2 * kPadding + 1)) - kPadding;
  return {x, y, width, height};
}

}  // namespace

Augmentation augmentation(AugmentRule rule, std::uint64_t seed, std::int64_t epoch,
                          std::int64_t image, int width, int height) {
  Augmentation result{{0, 0, width, height}, false};
  if (rule == AugmentRule::none) return result;
  DataRandom random(seed, RandomPurpose::augment, static_cast<std::uint64_t>(epoch),
                    static_cast<std::uint64_t>(image));
  result.flip = (random.next32() >> 31) != 0;
  if (rule == AugmentRule::resized_crop) result.box = resized_crop(random, width, height);
  if (rule == AugmentRule::pad_crop_flip) result.box = padded_crop(random, width, height);
  return result;
}

}  // namespace convoy
