#include "engine/train/run_plan.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "engine/data/order.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max() / 2;

}  // namespace

RunPlan::RunPlan(const TrainingJob& job, const Division& division)
    : job_(job), settings_(job.settings), division_(division) {
  const std::int64_t images = job.data.train->size();
  if (images == 0) CONVOY_FAIL(data, "{}: there are no training images", settings_.data);
  epoch_ = {images, settings_.batch, settings_.accumulate};
  last_epoch_ = settings_.epochs.value_or(settings_.steps ? kUnbounded : 1);
  set_length({});
  check_groups(epoch_);
  least_group_ = least_micro_batch(*job.network, settings_.bn, job.image_size);
}

void RunPlan::go_on_from(const ProgressState& state) {
  set_length(state);
  EpochPlan rest = epoch_;
  rest.images -= state.images_done;
  if (rest.images > 0) check_groups(rest);
}

// The steps of the run and of its learning rate's schedule.
void RunPlan::set_length(const ProgressState& state) {
  EpochPlan rest = epoch_;
  rest.images -= state.images_done;
  last_step_ = settings_.steps.value_or(kUnbounded);
  std::int64_t scheduled = last_step_;
  if (settings_.epochs || !settings_.steps) {
    scheduled = state.step + rest.steps() + (last_epoch_ - state.epoch) * epoch_.steps();
  }
  schedule_ = {parse_lr_schedule(settings_.lr_schedule), *settings_.lr, settings_.warmup,
               scheduled};
  last_step_ = std::min(last_step_, scheduled);
}

void RunPlan::check_groups(const EpochPlan& plan) const {
  check_batch_norm(*job_.network, settings_, plan.smallest_group(division_), job_.image_size);
}

// Whole windows, and the last one of this epoch and of whole ones.
std::vector<std::vector<std::vector<std::int64_t>>> RunPlan::shapes_from(
    const ProgressState& state) const {
  std::set<std::vector<std::vector<std::int64_t>>> shapes;
  const std::int64_t whole = epoch_.batch * epoch_.accumulate;
  for (std::int64_t images : {epoch_.images - state.images_done, epoch_.images}) {
    for (std::int64_t window : {std::min(images, whole), images % whole}) {
      if (window == 0) continue;
      std::vector<std::vector<std::int64_t>> shares;
      for (std::int64_t done = 0; done < window; done += epoch_.batch) {
        shares.push_back(shares_of(std::min(epoch_.batch, window - done), division_.replicas));
      }
      shapes.insert(std::move(shares));
    }
  }
  return {shapes.begin(), shapes.end()};
}

bool RunPlan::evaluates_after(std::int64_t epoch) const {
  if (!job_.data.validation || job_.data.validation->size() == 0) return false;
  if (!settings_.eval_every && settings_.steps) return false;
  return epoch % settings_.eval_every.value_or(1) == 0;
}

// At the end of an epoch the save waits for the evaluation.
bool RunPlan::saves_within(std::int64_t step) const {
  return settings_.save_every && step % *settings_.save_every == 0;
}

bool RunPlan::saves_after_epoch(const ProgressState& state) const {
  return !settings_.save_every || saves_within(state.step) || reached_end(state);
}

}  // namespace convoy
