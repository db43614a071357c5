// From decoded images to what a network reads: image size, crop and flip, then float planes (CHW),
// (p / 255 - mean) / deviation.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/augment.h"
#include "engine/data/dataset.h"
#include "engine/data/image.h"

namespace convoy {

/// What a transform needs to know.
struct TransformOptions {
  int image_size = 224;
  Normalisation normalisation = kImageNetNormalisation;
  ResizeRule resize = ResizeRule::centre_crop;
  AugmentRule augment = AugmentRule::none;  // in training only
};

/// Names one variation of an image: (seed, epoch, image) decide it.
struct AugmentKey {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t image = 0;
};

/// Turns images into floats; usable from several threads.
class Transform {
 public:
  explicit Transform(const TransformOptions& options);

  /// Floats that each image becomes: 3 x image_size x image_size.
  std::int64_t count() const;

  /// Without variation. Writes count() floats.
  void eval(const Image& image, float* out) const;
  /// With the variation that `key` names.
  void train(const Image& image, const AugmentKey& key, float* out) const;
  /// The same for image `image` of `dataset`, of which no more is decoded than its crop needs.
  void train(const Dataset& dataset, const AugmentKey& key, float* out) const;

 private:
  Image fit(const ImageView& view) const;
  Image varied(const Image& image, const CropBox& box) const;
  Image fit(const ImagePart& part) const;
  void write(const ImageView& view, bool flip, float* out) const;

  TransformOptions options_;
  std::array<std::array<float, 256>, kChannels> values_;  // of each byte, by channel
};

/// Shorter side to round(size / 0.875), centre cropped; as it is if it already has the size.
Image centre_crop(const Image& image, int image_size);

/// The pixels of `box`, black where it lies outside of the image.
Image padded_part(const ImageView& view, const CropBox& box);

/// One file as `predict` and `eval` see it: 3 x image_size x image_size floats.
std::vector<float> load_image_for_eval(const std::string& path, int image_size,
                                       const Normalisation& normalisation, std::int64_t max_pixels);

}  // namespace convoy
