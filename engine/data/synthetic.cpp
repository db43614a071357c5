#include "engine/data/synthetic.h"

#include <string>
#include <vector>

#include "engine/data/fingerprint.h"
#include "engine/data/random.h"

namespace convoy {
namespace {

constexpr int kPatternSide = 8;  // patches across an image, each of one colour
constexpr Normalisation kSyntheticNormalisation = {{0.5f, 0.5f, 0.5f}, {0.2f, 0.2f, 0.2f}};

class SyntheticImages : public Dataset {
 public:
  SyntheticImages(const SyntheticOptions& options, int side, std::int64_t classes)
      : options_(options), side_(side) {
    for (std::int64_t c = 0; c < classes; ++c) {
      class_names_.push_back(std::to_string(c));
      DataRandom random(options.seed, RandomPurpose::pattern, 0, static_cast<std::uint64_t>(c));
      for (int i = 0; i < kPatternBytes; ++i) {
        patterns_.push_back(static_cast<std::uint8_t>(random.next32() >> 24));
      }
    }
  }

  std::int64_t size() const override { return options_.count; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::int64_t label(std::int64_t i) const override {
    return (options_.first + i) % std::ssize(class_names_);
  }
  std::string image_path_or_name(std::int64_t i) const override {
    return fmt::format("synthetic image {}", options_.first + i);
  }
  Normalisation normalisation() const override { return kSyntheticNormalisation; }
  AugmentRule augment_rule() const override { return AugmentRule::flip; }

  Image read(std::int64_t i) const override {
    Image image{side_, side_, {}, false};
    image.pixels.reserve(static_cast<std::size_t>(side_) * side_ * kChannels);
    DataRandom random(options_.seed, RandomPurpose::synthetic, 0,
                      static_cast<std::uint64_t>(options_.first + i));
    const std::uint8_t* pattern = patterns_.data() + label(i) * kPatternBytes;
    for (int y = 0; y < side_; ++y) {
      for (int x = 0; x < side_; ++x) add_pixel(patch(pattern, x, y), random, image);
    }
    return image;
  }

  std::string fingerprint() const override {
    Fingerprint hash;
    hash.add_text("synthetic images");
    hash.add_number(static_cast<std::int64_t>(options_.seed));
    for (std::int64_t n : {options_.first, options_.count, std::int64_t{side_},
                           static_cast<std::int64_t>(class_names_.size())}) {
      hash.add_number(n);
    }
    return hash.hex();
  }

 private:
  static constexpr int kPatternBytes = kPatternSide * kPatternSide * kChannels;

  const std::uint8_t* patch(const std::uint8_t* pattern, int x, int y) const {
    std::int64_t row = std::int64_t{y} * kPatternSide / side_;
    std::int64_t column = std::int64_t{x} * kPatternSide / side_;
    return pattern + (row * kPatternSide + column) * kChannels;
  }

  /// Half pattern, half noise.
  static void add_pixel(const std::uint8_t* colour, DataRandom& random, Image& image) {
    std::uint32_t noise = random.next32();
    for (int c = 0; c < kChannels; ++c) {
      std::uint32_t v = (colour[c] + (noise >> (8 * c) & 0xFF)) / 2;
      image.pixels.push_back(static_cast<std::uint8_t>(v));
    }
  }

  SyntheticOptions options_;
  int side_;
  std::vector<std::string> class_names_;
  std::vector<std::uint8_t> patterns_;
};

class SyntheticRows : public Dataset {
 public:
  SyntheticRows(const SyntheticOptions& options, std::int64_t features, std::int64_t targets)
      : options_(options), features_(features), targets_(targets) {
    DataRandom random(options.seed, RandomPurpose::pattern, 0, 0);
    for (std::int64_t i = 0; i < (features + 1) * targets; ++i) {
      map_.push_back(static_cast<float>(random.uniform(-1, 1)));
    }
  }

  SampleKind kind() const override { return SampleKind::rows; }
  std::int64_t size() const override { return options_.count; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::int64_t label(std::int64_t) const override { return 0; }
  std::string image_path_or_name(std::int64_t i) const override {
    return fmt::format("synthetic row {}", options_.first + i);
  }
  Image read(std::int64_t i) const override {
    CONVOY_FAIL(internal, "data set: sample {} is a row, not an image", i);
  }
  std::int64_t features() const override { return features_; }
  std::int64_t targets() const override { return targets_; }

  void read_row(std::int64_t i, float* x, float* target) const override {
    DataRandom random(options_.seed, RandomPurpose::synthetic, 0,
                      static_cast<std::uint64_t>(options_.first + i));
    for (std::int64_t k = 0; k < features_; ++k) x[k] = static_cast<float>(random.uniform(-1, 1));
    const float* w = map_.data();
    for (std::int64_t t = 0; t < targets_; ++t, w += features_ + 1) {
      target[t] = w[features_];  // the constant term
      for (std::int64_t k = 0; k < features_; ++k) target[t] += w[k] * x[k];
    }
  }

  std::string fingerprint() const override {
    Fingerprint hash;
    hash.add_text("synthetic rows");
    hash.add_number(static_cast<std::int64_t>(options_.seed));
    for (std::int64_t n : {options_.first, options_.count, features_, targets_}) {
      hash.add_number(n);
    }
    return hash.hex();
  }

 private:
  SyntheticOptions options_;
  std::int64_t features_;
  std::int64_t targets_;
  std::vector<float> map_;
  std::vector<std::string> class_names_;
};

}  // namespace

std::shared_ptr<const Dataset> synthetic_images(const SyntheticOptions& options, int side,
                                                std::int64_t classes) {
  CONVOY_CHECK(options.count >= 1 && side >= 1 && classes >= 1,
               "synthetic images: {} images of side {} and {} classes, at least 1 of each expected",
               options.count, side, classes);
  return std::make_shared<SyntheticImages>(options, side, classes);
}

std::shared_ptr<const Dataset> synthetic_rows(const SyntheticOptions& options,
                                              std::int64_t features, std::int64_t targets) {
  CONVOY_CHECK(options.count >= 1 && features >= 1 && targets >= 1,
               "synthetic rows: {} rows of {} features and {} targets, at least 1 of each expected",
               options.count, features, targets);
  return std::make_shared<SyntheticRows>(options, features, targets);
}

}  // namespace convoy
