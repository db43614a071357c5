// The batches of an epoch for the training loop: loading, images that were passed over, and what
// the processes have to tell each other about these.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/data/loader.h"
#include "engine/train/batch_plan.h"
#include "engine/train/ranks.h"
#include "engine/train/step_runner.h"

namespace convoy {

struct BatchSourceOptions {
  Division division;
  std::int64_t least_group = 1;  ///< fewest images that batch norm can normalise together
  bool skips = false;            ///< bad images are passed over
  int local_workers = 1;         ///< those that say they are done with a batch
  /// Is told what was left out; the same on all processes.
  std::function<void(const std::string&)> warn;
};

/// Every process has one over its own loader, and all make the same calls.
class BatchSource : public BatchFeed {
 public:
  /// `batch_images`: of a whole batch, over all replicas.
  BatchSource(std::unique_ptr<Loader> loader, std::int64_t batch_images, const Ranks& ranks,
              BatchSourceOptions options);

  void start_epoch(std::int64_t epoch, std::int64_t first_image);
  /// Begins a window of the epoch and sets its images and shares. Where images may be passed over
  /// it loads all of them: only then each one's weight is known.
  void open(const WindowPlan& plan, Window& window);

  const HostBatch& at(std::int64_t batch) override;
  void done(std::int64_t batch) override;

  /// Since the epoch was started: what was passed over, by all processes, and out of how many.
  std::vector<SkippedImage> skipped() const { return ranks_.all_skipped(skipped_); }
  std::int64_t loaded() const { return loaded_; }
  /// Seconds spent waiting for data so far.
  double wait_seconds() const { return loader_->wait_seconds(); }

 private:
  void open_whole(Window& window);
  HostBatch load();
  void settle_shares(HostBatch& batch);

  std::unique_ptr<Loader> loader_;
  const std::int64_t batch_images_;
  const Ranks& ranks_;
  BatchSourceOptions options_;
  std::int64_t step_ = 0;
  std::mutex mutex_;  // of the window's batches, which any worker may ask for
  std::map<std::int64_t, HostBatch> batches_;  // those that some worker still needs
  std::map<std::int64_t, int> done_;           // workers that do not
  std::int64_t next_ = 0;                      // the first one that was not loaded
  std::vector<SkippedImage> skipped_;
  std::int64_t loaded_ = 0;
};

/// Tells all processes what this one has passed over of `batch`, and takes what all have off its
/// shares and labels. Collective.
void leave_out_everywhere(HostBatch& batch, const Ranks& ranks);

}  // namespace convoy
