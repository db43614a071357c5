#include "engine/data/transform.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/data/decode_image.h"
#include "engine/data/resize.h"

namespace convoy {
namespace {

constexpr int kMostImageSize = 16384;
constexpr double kCropShare = 0.875;  // of the shorter side

/// Like torchvision: half a pixel goes to the even side.
std::int64_t centre_offset(std::int64_t whole, int part) {
  return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(whole - part) / 2));
}

Extent extent_for(const Image& image, int image_size) {
  std::int64_t shorter = std::lround(image_size / kCropShare);
  std::int64_t width = image.width;
  std::int64_t height = image.height;
  if (width <= height) return {shorter, shorter * height / width};
  return {shorter * width / height, shorter};
}

Image copy_of(const ImageView& view) {
  return padded_part(view, {0, 0, view.width, view.height});
}

bool has_size(const ImageView& view, int size) {
  return view.width == size && view.height == size;
}

}  // namespace

Image padded_part(const ImageView& view, const CropBox& box) {
  Image part{box.width, box.height, {}, false};
  part.pixels.resize(static_cast<std::size_t>(box.width) * box.height * kChannels);
  int left = std::max(0, box.x);
  int right = std::min(view.width, box.x + box.width);
  for (int y = std::max(0, box.y); y < std::min(view.height, box.y + box.height); ++y) {
    if (left >= right) break;
    std::int64_t at = std::int64_t{y - box.y} * box.width + (left - box.x);
    std::memcpy(part.pixels.data() + at * kChannels, view.row(y) + std::int64_t{left} * kChannels,
                static_cast<std::size_t>(right - left) * kChannels);
  }
  return part;
}

Image centre_crop(const Image& image, int image_size) {
  if (has_size(image.view(), image_size)) return image;
  Extent full = extent_for(image, image_size);
  return resize_window(image.view(), full,
                       {centre_offset(full.width, image_size),
                        centre_offset(full.height, image_size), image_size, image_size});
}

Transform::Transform(const TransformOptions& options) : options_(options) {
  CONVOY_CHECK(options.image_size >= 1 && options.image_size <= kMostImageSize,
               "--image-size {}: 1 to {} expected", options.image_size, kMostImageSize);
  check_normalisation(options.normalisation);
  for (int c = 0; c < kChannels; ++c) {
    for (int v = 0; v < 256; ++v) {
      float share = static_cast<float>(v) / 255.0f;
      values_[c][v] = (share - options.normalisation.mean[c]) / options.normalisation.deviation[c];
    }
  }
}

std::int64_t Transform::count() const {
  return std::int64_t{kChannels} * options_.image_size * options_.image_size;
}

void Transform::write(const ImageView& view, bool flip, float* out) const {
  std::int64_t plane = std::int64_t{view.width} * view.height;
  for (int y = 0; y < view.height; ++y) {
    const std::uint8_t* in = view.row(y) + (flip ? std::int64_t{view.width - 1} * kChannels : 0);
    std::int64_t step = flip ? -kChannels : kChannels;
    float* row = out + std::int64_t{y} * view.width;
    for (int x = 0; x < view.width; ++x, in += step) {
      for (int c = 0; c < kChannels; ++c) row[c * plane + x] = values_[c][in[c]];
    }
  }
}

Image Transform::fit(const ImageView& view) const {
  if (has_size(view, options_.image_size)) return copy_of(view);
  return resize(view, options_.image_size, options_.image_size);
}

void Transform::eval(const Image& image, float* out) const {
  if (has_size(image.view(), options_.image_size)) return write(image.view(), false, out);
  bool crop = options_.resize == ResizeRule::centre_crop;
  Image fitted = crop ? centre_crop(image, options_.image_size) : fit(image.view());
  write(fitted.view(), false, out);
}

Image Transform::varied(const Image& image, const CropBox& box) const {
  switch (options_.augment) {
    case AugmentRule::resized_crop:
      return fit(image.view().crop(box.x, box.y, box.width, box.height));
    case AugmentRule::pad_crop_flip:
      return fit(padded_part(image.view(), box).view());
    default:
      return fit(image.view());
  }
}

void Transform::train(const Image& image, const AugmentKey& key, float* out) const {
  if (options_.augment == AugmentRule::none) return eval(image, out);
  Augmentation change =
      augmentation(options_.augment, key.seed, key.epoch, key.image, image.width, image.height);
  write(varied(image, change.box).view(), change.flip, out);
}

// The crop as if the whole image had been decoded; where that was shrunk, to a part of a pixel.
Image Transform::fit(const ImagePart& part) const {
  const CropBox& box = part.box;
  const int x = box.x - part.x, y = box.y - part.y;
  if (part.shrink == 1) return fit(part.image.view().crop(x, y, box.width, box.height));
  const auto scaled = [&](int place, int most) {
    return std::min(static_cast<float>(place) / static_cast<float>(part.shrink),
                    static_cast<float>(most));
  };
  return resize(
      part.image.view(), options_.image_size, options_.image_size,
      {scaled(x, part.image.width), scaled(y, part.image.height),
       scaled(x + box.width, part.image.width), scaled(y + box.height, part.image.height)});
}

void Transform::train(const Dataset& dataset, const AugmentKey& key, float* out) const {
  if (options_.augment != AugmentRule::resized_crop) {
    return train(dataset.read(key.image), key, out);
  }
  bool flip = false;
  const auto choose = [&](int width, int height) {
    const Augmentation change =
        augmentation(options_.augment, key.seed, key.epoch, key.image, width, height);
    flip = change.flip;
    return change.box;
  };
  // Twice as large as needed at least, so that resizing still decides what is smoothed.
  const ImagePart part = dataset.read_part(key.image, {choose, 2 * options_.image_size});
  write(fit(part).view(), flip, out);
}

std::vector<float> load_image_for_eval(const std::string& path, int image_size,
                                       const Normalisation& normalisation,
                                       std::int64_t max_pixels) {
  Transform transform({image_size, normalisation, ResizeRule::centre_crop, AugmentRule::none});
  std::vector<float> values(static_cast<std::size_t>(transform.count()));
  transform.eval(read_image_file(path, max_pixels), values.data());
  return values;
}

}  // namespace convoy
