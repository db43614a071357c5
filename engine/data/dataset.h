// A data set: samples by number, with labels and names, in host memory or on disk. Samples are
// images with a class, or rows of numbers with regression targets. Reading is safe from several
// threads.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/data/augment.h"
#include "engine/data/image.h"
#include "kernels/base/error.h"

namespace convoy {

enum class SampleKind { images, rows };

/// How an image comes to the image size outside of training.
enum class ResizeRule {
  stretch,      // the whole image is resized
  centre_crop,  // used as it is if it fits, else shorter side to round(size / 0.875), centre
                // cropped
};

/// Pixels p in 0..1 become (p - mean) / deviation, by channel.
struct Normalisation {
  std::array<float, 3> mean;
  std::array<float, 3> deviation;

  friend bool operator==(const Normalisation&, const Normalisation&) = default;
};

/// ImageNet's, for folders and wherever nothing else is known.
inline constexpr Normalisation kImageNetNormalisation = {{0.485f, 0.456f, 0.406f},
                                                         {0.229f, 0.224f, 0.225f}};

/// `usage` unless all deviations are finite and above 0 and all means are finite.
void check_normalisation(const Normalisation& normalisation);

/// Samples 0..size()-1.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual SampleKind kind() const { return SampleKind::images; }
  virtual std::int64_t size() const = 0;

  /// The class table of the training set, in byte order; empty for rows.
  virtual const std::vector<std::string>& class_names() const = 0;
  virtual std::int64_t label(std::int64_t i) const = 0;
  /// The path of sample `i`, or file and record. Any bytes: see printable().
  virtual std::string image_path_or_name(std::int64_t i) const = 0;
  /// Where the label of sample `i` stands, for messages.
  virtual std::string label_place(std::int64_t i) const { return image_path_or_name(i); }

  virtual Normalisation normalisation() const { return kImageNetNormalisation; }
  std::array<float, 3> mean() const { return normalisation().mean; }
  std::array<float, 3> deviation() const { return normalisation().deviation; }
  virtual ResizeRule resize_rule() const { return ResizeRule::stretch; }
  virtual AugmentRule augment_rule() const { return AugmentRule::none; }

  /// Decodes image `i`. `data` errors are bad images: path or record, and reason.
  virtual Image read(std::int64_t i) const = 0;
  /// The wished part of image `i`; sets whose files can be decoded in part do no more.
  virtual ImagePart read_part(std::int64_t i, const PartWish& wish) const;

  /// Numbers in a row and in its target; 0 for images.
  virtual std::int64_t features() const { return 0; }
  virtual std::int64_t targets() const { return 0; }
  /// Writes row `i` (features() numbers) and its target (targets() numbers).
  virtual void read_row(std::int64_t i, float* features, float* targets) const;

  /// Lines to print when the set has been opened: "ignored 4 hidden or foreign entries".
  virtual std::vector<std::string> notes() const { return {}; }
  /// The images read so far that carry a rotation, in order.
  virtual std::vector<std::int64_t> rotated_images() const { return {}; }

  /// XXH3-128 of names, sizes and labels, wherever the files lie: equal for equal data.
  virtual std::string fingerprint() const = 0;
};

/// "1 image carries a rotation (EXIF); pixels are used as stored"; empty for 0.
std::string rotation_note(std::int64_t images);

/// `data` unless every label is in 0..classes-1: the first place, its value and the range.
void check_labels(const Dataset& dataset, std::int64_t classes);

/// `data` unless both class tables are equal: the first entry that differs. `expected_by` says
/// whose table the first is ("the checkpoint").
void check_class_names(const std::vector<std::string>& expected, const std::string& expected_by,
                       const std::vector<std::string>& found);

/// The first `count` samples of `dataset`.
std::shared_ptr<const Dataset> first_samples(std::shared_ptr<const Dataset> dataset,
                                             std::int64_t count);

}  // namespace convoy
