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
  // Replicas share each batch; this process loads for `local_replicas` from `first_replica` on.
  int first_replica = 0;
  int local_replicas = 1;
  int replicas = 1;
};

/// An image that was passed over, and why.
struct SkippedImage {
  std::int64_t id = 0;
  std::int64_t position = 0;  // in the epoch's order
  std::string name;
  std::string reason;
};

/// The images (or rows) of one batch that this process works on, those of its first replica first.
/// It may be empty: all its images bad, or no share in a short batch.
struct HostBatch {
  std::int64_t images = 0;
  Shape shape;  // (images, 3, size, size) or (images, features)
  std::vector<float> x;
  std::vector<std::int64_t> labels;  // one an image; empty for rows
  std::vector<float> targets;        // of rows, or one-hot labels
  std::int64_t target_width = 0;
  std::vector<std::int64_t> ids;  // sample numbers in the data set
  std::vector<SkippedImage> skipped;
  std::int64_t first = 0;         // where the batch of all replicas starts in the epoch's order
  std::int64_t batch_images = 0;  // samples of all replicas, bad ones too
  /// Images of each replica of the job; bad ones are left out where this process met them.
  std::vector<std::int64_t> shares;
  std::vector<std::int64_t> starts;  // where those of each of this process's replicas start
};

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
