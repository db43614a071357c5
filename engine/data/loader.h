// Batches in the order of an epoch, made by loader threads ahead of their use. What a batch holds
// does not depend on the number of threads: bit for bit the same for 0, 1 or 20 of them.
//
//   threads:  claim sample -> read, vary, write its place of the batch -> next sample, up to
//   `prefetch` batches ahead            next(): waits for the oldest batch and takes it
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "kernels/base/shape.h"

namespace convoy {

/// What happens when an image cannot be used.
enum class BadImages { stop, skip };

/// Replicas first, first + 1, ...
struct ReplicaRange {
  int first = 0;
  int count = 1;

  int end() const { return first + count; }
  friend bool operator==(const ReplicaRange&, const ReplicaRange&) = default;
};

struct LoaderOptions {
  std::int64_t batch = 1;  // of all replicas together
  std::uint64_t seed = 0;
  int threads = 2;    // 0: next() does the work
  int prefetch = 2;   // batches held ready or in the making
  bool train = true;  // false: the set's own order, no variation
  int image_size = 224;
  bool augment = true;  // the set's variations, in training
  BadImages bad_images = BadImages::stop;
  std::optional<Normalisation> normalisation;  // default: the set's own
  std::int64_t one_hot = 0;  // classes; above 0, labels also become targets of that width
  // Replicas share each batch. This process loads the images of those whose first stage it holds,
  // and labels of those whose last stage it holds; together they must be neighbours.
  int replicas = 1;
  ReplicaRange images = {};
  ReplicaRange labels = {};
};

/// An image that was passed over, and why.
struct SkippedImage {
  std::int64_t id = 0;
  std::int64_t position = 0;  // in the epoch's order
  std::string name;
  std::string reason;
};

/// What one process needs of a batch: images (or rows) of some replicas, labels of some. Each may
/// be empty: all images bad, no share in a short batch, or a process that holds neither first nor
/// last stages.
struct HostBatch {
  std::int64_t images = 0;  ///< in x
  Shape shape;              ///< of x: (images, 3, size, size) or (images, features)
  std::vector<float> x;
  std::vector<std::int64_t> ids;     ///< sample numbers in the data set of what is in x
  std::vector<std::int64_t> labels;  ///< one an image; empty for rows
  std::vector<float> targets;        ///< of rows, or one-hot labels
  std::int64_t target_width = 0;
  std::vector<SkippedImage> skipped;
  std::int64_t first = 0;         ///< where the batch of all replicas starts in the epoch's order
  std::int64_t batch_images = 0;  ///< samples of all replicas, bad ones too
  /// Images of each replica of the job; bad ones are left out where they are known.
  std::vector<std::int64_t> shares;
  ReplicaRange image_replicas = {};        ///< whose images are in x
  ReplicaRange label_replicas = {};        ///< whose labels or targets are there
  std::vector<std::int64_t> image_starts;  ///< where those of each of image_replicas start in x
  std::vector<std::int64_t> label_starts;
  std::vector<std::int64_t> label_positions;  ///< of each label in the epoch's order

  /// Where the images, or labels, of a replica of the range start.
  std::int64_t image_start(int replica) const {
    return image_starts.at(static_cast<std::size_t>(replica - image_replicas.first));
  }
  std::int64_t label_start(int replica) const {
    return label_starts.at(static_cast<std::size_t>(replica - label_replicas.first));
  }
  /// Fills in the starts from shares and ranges.
  void set_starts();
};

/// Takes the images at these positions of the epoch's order off the shares, and their labels off
/// the labels: what any process has passed over. Images in x have been left out already.
void leave_out(HostBatch& batch, const std::vector<std::int64_t>& positions);

/// Loads one data set. Its methods are for one thread.
class Loader {
 public:
  Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Begins an epoch at position `first_image` of its order (for resuming), leaving any other.
  void start_epoch(std::int64_t epoch, std::int64_t first_image = 0);

  /// The next batch; absent at the end of the epoch. Throws what a loader thread met, in the order
  /// of the batches, and throws it again when called again.
  std::optional<HostBatch> next();

  /// Gives the memory of a used batch back for a later one.
  void recycle(HostBatch batch);

  /// Batches of the epoch from where it was started.
  std::int64_t batches() const;
  /// Seconds that next() has waited or worked, since the loader was made.
  double wait_seconds() const;
  const Dataset& dataset() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// "skipped 4 of 20: PATH (reason), ..."; empty if none.
std::string describe_skipped(const std::vector<SkippedImage>& skipped, std::int64_t images);

}  // namespace convoy
