#include "engine/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/data/fingerprint.h"
#include "engine/io/text.h"

namespace convoy {
namespace {

/// Passes everything on but the size.
class FirstSamples : public Dataset {
 public:
  FirstSamples(std::shared_ptr<const Dataset> all, std::int64_t count)
      : all_(std::move(all)), size_(count) {}

  SampleKind kind() const override { return all_->kind(); }
  std::int64_t size() const override { return size_; }
  const std::vector<std::string>& class_names() const override { return all_->class_names(); }
  std::int64_t label(std::int64_t i) const override { return all_->label(i); }
  std::string image_path_or_name(std::int64_t i) const override {
    return all_->image_path_or_name(i);
  }
  std::string label_place(std::int64_t i) const override { return all_->label_place(i); }
  Normalisation normalisation() const override { return all_->normalisation(); }
  ResizeRule resize_rule() const override { return all_->resize_rule(); }
  AugmentRule augment_rule() const override { return all_->augment_rule(); }
  Image read(std::int64_t i) const override { return all_->read(i); }
  ImagePart read_part(std::int64_t i, const PartWish& wish) const override {
    return all_->read_part(i, wish);
  }
  std::int64_t features() const override { return all_->features(); }
  std::int64_t targets() const override { return all_->targets(); }
  void read_row(std::int64_t i, float* features, float* targets) const override {
    all_->read_row(i, features, targets);
  }
  std::vector<std::string> notes() const override { return all_->notes(); }
  std::vector<std::int64_t> rotated_images() const override { return all_->rotated_images(); }
  std::string fingerprint() const override {
    Fingerprint hash;
    hash.add_number(size_);
    hash.add_text(all_->fingerprint());
    return hash.hex();
  }

 private:
  std::shared_ptr<const Dataset> all_;
  std::int64_t size_;
};

}  // namespace

void check_normalisation(const Normalisation& normalisation) {
  for (int c = 0; c < kChannels; ++c) {
    float mean = normalisation.mean[c];
    float deviation = normalisation.deviation[c];
    CONVOY_CHECK(std::isfinite(mean) && std::isfinite(deviation) && deviation > 0,
                 "normalisation: mean {} and deviation {} of channel {}, a finite mean and a "
                 "deviation above 0 expected",
                 mean, deviation, c);
  }
}

ImagePart Dataset::read_part(std::int64_t i, const PartWish& wish) const {
  return part_of(read(i), wish);
}

void Dataset::read_row(std::int64_t i, float*, float*) const {
  CONVOY_FAIL(internal, "data set: sample {} is an image, not a row", i);
}

void check_labels(const Dataset& dataset, std::int64_t classes) {
  CONVOY_CHECK(classes >= 1, "classes: {}, at least 1 expected", classes);
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    std::int64_t label = dataset.label(i);
    if (label < 0 || label >= classes) {
      CONVOY_FAIL(data, "{}: label {}, 0..{} expected", printable(dataset.label_place(i)), label,
                  classes - 1);
    }
  }
}

std::string rotation_note(std::int64_t images) {
  if (images == 0) return {};
  return fmt::format("{} image{} a rotation (EXIF); pixels are used as stored", images,
                     images == 1 ? " carries" : "s carry");
}

void check_class_names(const std::vector<std::string>& expected, const std::string& expected_by,
                       const std::vector<std::string>& found) {
  if (expected == found) return;
  auto entry = [](const std::vector<std::string>& names, std::size_t i) {
    return i < names.size() ? fmt::format("\"{}\"", printable(names[i])) : std::string("absent");
  };
  std::size_t i = 0;
  while (i < expected.size() && i < found.size() && expected[i] == found[i]) ++i;
  CONVOY_FAIL(data, "class table: class {} is {} in the data, {} in {} ({} and {} classes)", i,
              entry(found, i), entry(expected, i), expected_by, found.size(), expected.size());
}

std::shared_ptr<const Dataset> first_samples(std::shared_ptr<const Dataset> dataset,
                                             std::int64_t count) {
  CONVOY_CHECK(count >= 1, "--limit {}: at least 1 expected", count);
  if (count >= dataset->size()) return dataset;
  return std::make_shared<FirstSamples>(std::move(dataset), count);
}

}  // namespace convoy
