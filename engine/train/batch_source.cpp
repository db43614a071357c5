#include "engine/train/batch_source.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/base/error.h"

namespace convoy {
namespace {

std::int64_t sum_of(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

}  // namespace

BatchSource::BatchSource(std::unique_ptr<Loader> loader, const Ranks& ranks,
                         BatchSourceOptions options)
    : loader_(std::move(loader)), ranks_(ranks), options_(std::move(options)) {}

void BatchSource::start_epoch(std::int64_t epoch, std::int64_t first_image) {
  loader_->start_epoch(epoch, first_image);
  ahead_.clear();
  skipped_.clear();
  loaded_ = 0;
}

void BatchSource::open(const WindowPlan& plan, Window& window) {
  step_ = window.step;
  window.images = plan.images;
  window.batches = plan.batches;
  ahead_.clear();
  if (!options_.skips) return;
  window.images = 0;
  for (std::int64_t i = 0; i < plan.batches; ++i) {
    ahead_.push_back(load());
    settle_shares(ahead_.back());
    window.images += sum_of(ahead_.back().shares);
  }
  std::reverse(ahead_.begin(), ahead_.end());
}

HostBatch BatchSource::next() {
  if (ahead_.empty()) return load();
  HostBatch batch = std::move(ahead_.back());
  ahead_.pop_back();
  return batch;
}

HostBatch BatchSource::load() {
  ranks_.enter(Activity::loading);
  std::optional<HostBatch> batch = loader_->next();
  ranks_.enter(Activity::computing);
  CONVOY_DCHECK(batch.has_value(), "the epoch ended before its last batch");
  skipped_.insert(skipped_.end(), batch->skipped.begin(), batch->skipped.end());
  loaded_ += batch->batch_images;
  return std::move(*batch);
}

// Each process knows what its own replicas have left. Bad images that were passed over may leave a
// micro-batch that batch norm cannot normalise.
void BatchSource::settle_shares(HostBatch& batch) {
  const auto first = batch.shares.begin() + ranks_.first_replica();
  batch.shares = ranks_.all_numbers({first, first + ranks_.local_replicas()});
  if (sum_of(batch.shares) == batch.batch_images) return;
  const std::int64_t dropped =
      drop_small_groups(batch.shares, options_.division, options_.least_group);
  if (dropped > 0) {
    options_.warn(fmt::format(
        "left out {} image(s) of step {}: batch norm needs {} in a micro-batch, the others were "
        "passed over",
        dropped, step_, options_.least_group));
  }
  const auto mine = batch.shares.begin() + ranks_.first_replica();
  batch.images = std::accumulate(mine, mine + ranks_.local_replicas(), std::int64_t{0});
}

}  // namespace convoy
