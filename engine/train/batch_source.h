// The batches of an epoch for the training loop: loading, images that were passed over, and what
// the processes have to tell each other about these.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
  /// Is told what was left out; the same on all processes.
  std::function<void(const std::string&)> warn;
};

/// Every process has one over its own loader, and all make the same calls.
class BatchSource {
 public:
  BatchSource(std::unique_ptr<Loader> loader, const Ranks& ranks, BatchSourceOptions options);

  void start_epoch(std::int64_t epoch, std::int64_t first_image);
  /// Begins a window of the epoch and sets its images and batches. Where images may be passed over
  /// it loads all of them: only then each one's weight is known.
  void open(const WindowPlan& plan, Window& window);
  /// The window's next batch.
  HostBatch next();
  /// Gives a used batch's memory back.
  void recycle(HostBatch batch) { loader_->recycle(std::move(batch)); }

  /// Since the epoch was started: what was passed over, by all processes, and out of how many.
  std::vector<SkippedImage> skipped() const { return ranks_.all_skipped(skipped_); }
  std::int64_t loaded() const { return loaded_; }
  /// Seconds spent waiting for data so far.
  double wait_seconds() const { return loader_->wait_seconds(); }

 private:
  HostBatch load();
  void settle_shares(HostBatch& batch);

  std::unique_ptr<Loader> loader_;
  const Ranks& ranks_;
  BatchSourceOptions options_;
  std::int64_t step_ = 0;
  std::vector<HostBatch> ahead_;  // of the window, the next one last
  std::vector<SkippedImage> skipped_;
  std::int64_t loaded_ = 0;
};

}  // namespace convoy
