#include "engine/train/batch_source.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/data/order.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

std::int64_t sum_of(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

}  // namespace

BatchSource::BatchSource(std::unique_ptr<Loader> loader, std::int64_t batch_images,
                         const Ranks& ranks, BatchSourceOptions options)
    : loader_(std::move(loader)),
      batch_images_(batch_images),
      ranks_(ranks),
      options_(std::move(options)) {}

void BatchSource::start_epoch(std::int64_t epoch, std::int64_t first_image) {
  loader_->start_epoch(epoch, first_image);
  batches_.clear();
  skipped_.clear();
  loaded_ = 0;
}

void BatchSource::open(const WindowPlan& plan, Window& window) {
  step_ = window.step;
  window.images = plan.images;
  window.shares.clear();
  batches_.clear();
  done_.clear();
  next_ = 0;
  for (std::int64_t i = 0; i < plan.batches; ++i) {
    const std::int64_t images = std::min(batch_images_, plan.images - i * batch_images_);
    window.shares.push_back(shares_of(images, options_.division.replicas));
  }
  if (options_.skips) open_whole(window);
}

void BatchSource::open_whole(Window& window) {
  window.images = 0;
  for (std::vector<std::int64_t>& shares : window.shares) {
    ranks_.enter(Activity::loading);
    HostBatch batch = load();
    ranks_.enter(Activity::computing);
    settle_shares(batch);
    shares = batch.shares;
    window.images += sum_of(shares);
    batches_.emplace(next_++, std::move(batch));
  }
}

const HostBatch& BatchSource::at(std::int64_t batch) {
  const std::lock_guard lock(mutex_);
  for (; next_ <= batch; ++next_) batches_.emplace(next_, load());
  return batches_.at(batch);
}

void BatchSource::done(std::int64_t batch) {
  const std::lock_guard lock(mutex_);
  if (++done_[batch] < options_.local_workers) return;
  const auto found = batches_.find(batch);
  if (found == batches_.end()) return;
  loader_->recycle(std::move(found->second));
  batches_.erase(found);
}

HostBatch BatchSource::load() {
  std::optional<HostBatch> batch = loader_->next();
  CONVOY_DCHECK(batch.has_value(), "the epoch ended before its last batch");
  skipped_.insert(skipped_.end(), batch->skipped.begin(), batch->skipped.end());
  loaded_ += batch->batch_images;
  return std::move(*batch);
}

// Each process knows what it has passed over itself; all need to know it all. What is left may be
// a micro-batch that batch norm cannot normalise.
void BatchSource::settle_shares(HostBatch& batch) {
  leave_out_everywhere(batch, ranks_);
  if (sum_of(batch.shares) == batch.batch_images) return;
  const std::int64_t dropped =
      drop_small_groups(batch.shares, options_.division, options_.least_group);
  if (dropped > 0) {
    options_.warn(fmt::format(
        "left out {} image(s) of step {}: batch norm needs {} in a micro-batch, the others were "
        "passed over",
        dropped, step_, options_.least_group));
  }
  const auto mine = batch.shares.begin() + batch.image_replicas.first;
  batch.images = std::accumulate(mine, mine + batch.image_replicas.count, std::int64_t{0});
}

void leave_out_everywhere(HostBatch& batch, const Ranks& ranks) {
  std::vector<std::int64_t> positions;
  for (const SkippedImage& image : batch.skipped) positions.push_back(image.position);
  leave_out(batch, ranks.all_numbers(positions));
}

}  // namespace convoy
