// Random crops and flips. What happens to an image depends on (seed, epoch, image) alone, so it is
// the same for any number of ranks and loader threads.
#pragma once

#include <cstdint>

#include "engine/data/image.h"

namespace convoy {

/// How images of a data set are varied in training.
enum class AugmentRule {
  none,
  flip,           // mirrored with probability 1/2
  pad_crop_flip,  // 4 black pixels around, a crop of the old size, then flip
  resized_crop,   // a random part of the area, resized to the image size, then flip
};

/// What is done to one image in one epoch.
struct Augmentation {
  CropBox box;
  bool flip = false;

  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};

inline constexpr int kPadding = 4;

/// The augmentation of image `image` (of width x height pixels) in `epoch`.
Augmentation augmentation(AugmentRule rule, std::uint64_t seed, std::int64_t epoch,
                          std::int64_t image, int width, int height);

}  // namespace convoy
