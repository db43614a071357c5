#include "engine/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <set>

#include "engine/io/checkpoint.h"
#include "engine/io/hash.h"
#include "engine/nn/state.h"
#include "engine/optim/lr_schedule.h"
#include "engine/train/batch_plan.h"
#include "engine/train/evaluate.h"
#include "engine/train/progress_state.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double default_lr(const std::string& optimizer) {
  if (optimizer == "adamw") return 0.001;
  return optimizer == "lars" ? 1.0 : 0.1;
}

class Training {
 public:
  Training(const TrainingJob& job, const std::vector<Observer*>& observers,
           const StopRequest& stop);
  TrainingOutcome run();

 private:
  void plan();
  void open_checkpoint();
  void announce();
  void train_epoch();
  /// One optimizer step; false at the end of the epoch's images.
  void step();
  std::vector<HostBatch> load_window(const WindowPlan& window);
  void tell_reading_notes();
  void finish_epoch();
  /// False if it was broken off by the wish to stop: it is made again on resume.
  bool evaluate_if_due();
  void save();
  bool reached_end() const;
  bool stopping() const { return stop_.requested(); }
  bool evaluates() const;
  void tell(const std::function<void(Observer&)>& event);

  const TrainingJob& job_;
  const Settings& settings_;
  const std::vector<Observer*>& observers_;
  const StopRequest& stop_;
  EpochPlan epoch_plan_;
  LrSchedule schedule_;
  std::int64_t last_epoch_ = 0;
  std::int64_t last_step_ = 0;
  std::unique_ptr<CheckpointLock> lock_;
  std::unique_ptr<StepRunner> runner_;
  std::unique_ptr<Loader> loader_;
  ProgressState state_;
  std::optional<ProgressState> saved_;
  std::string saved_folder_;
  double seconds_ = 0;
  std::vector<SkippedImage> skipped_;  // since the epoch was started
  std::int64_t loaded_ = 0;            // samples since then, bad ones too
  std::set<std::string> told_;
};

Training::Training(const TrainingJob& job, const std::vector<Observer*>& observers,
                   const StopRequest& stop)
    : job_(job), settings_(job.settings), observers_(observers), stop_(stop) {
  plan();
  runner_ = make_runner(job_);
  if (!settings_.weights.empty()) {
    for (const std::string& note : load_weights(*job_.network, settings_.weights)) {
      tell([&](Observer& observer) { observer.on_note(note); });
    }
  }
  open_checkpoint();
}

void Training::tell(const std::function<void(Observer&)>& event) {
  for (Observer* observer : observers_) event(*observer);
}

void Training::plan() {
  const std::int64_t images = job_.data.train->size();
  if (images == 0) CONVOY_FAIL(data, "{}: there are no training images", settings_.data);
  epoch_plan_ = {images, settings_.batch, settings_.accumulate};
  constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max() / 2;
  last_epoch_ = settings_.epochs.value_or(settings_.steps ? kUnbounded : 1);
  last_step_ = settings_.steps.value_or(kUnbounded);
  const std::int64_t scheduled =
      settings_.epochs || !settings_.steps ? last_epoch_ * epoch_plan_.steps() : last_step_;
  schedule_ = {parse_lr_schedule(settings_.lr_schedule),
               settings_.lr.value_or(default_lr(settings_.optimizer)), settings_.warmup, scheduled};
  last_step_ = std::min(last_step_, scheduled);
  const MicroBatchRule rule{settings_.micro_batch_size, settings_.micro_batches};
  check_batch_norm(*job_.network, settings_.bn, epoch_plan_.smallest_micro_batch(rule),
                   job_.image_size);
}

void Training::open_checkpoint() {
  if (settings_.checkpoint.empty()) {
    CONVOY_CHECK(settings_.resume.empty(), "resume: --checkpoint DIR says from where");
    return;
  }
  lock_ = std::make_unique<CheckpointLock>(settings_.checkpoint);
  const bool holds = holds_run(settings_.checkpoint);
  CONVOY_CHECK(!holds || !settings_.resume.empty(),
               "checkpoint: {} holds a run; go on with --resume, or take another folder",
               settings_.checkpoint);
  if (settings_.resume == "yes" || holds) {
    std::vector<std::string> notes;
    state_ = resume(job_, settings_.checkpoint, *runner_, notes);
    saved_ = state_;
    for (const std::string& note : notes) {
      tell([&](Observer& observer) { observer.on_note(note); });
    }
  }
  const std::string warning = check_room(settings_.checkpoint, runner_->tensor_bytes());
  if (!warning.empty()) tell([&](Observer& observer) { observer.on_warning(warning); });
}

void Training::announce() {
  RunInfo info;
  info.model = job_.network->name();
  info.parameters = job_.network->parameter_count();
  info.classes = job_.network->out();
  info.image_size = job_.image_size;
  info.bn = settings_.bn;
  for (const std::string& device : settings_.devices) {
    info.devices.push_back(to_string(Device(device)));
    info.device_texts.push_back(context(device).describe());
  }
  info.train_images = job_.data.train->size();
  info.val_images = job_.data.validation ? job_.data.validation->size() : 0;
  info.steps_per_epoch = epoch_plan_.steps();
  info.total_steps = last_step_;
  info.start_step = state_.step;
  info.class_names = job_.data.train->class_names();
  tell([&](Observer& observer) { observer.on_run(info); });
  for (const std::string& note : job_.data.notes) {
    tell([&](Observer& observer) { observer.on_note(note); });
  }
}

bool Training::reached_end() const {
  return state_.step >= last_step_ || state_.epoch > last_epoch_;
}

TrainingOutcome Training::run() {
  announce();
  loader_ = make_loader(job_, job_.data.train, true);
  if (state_.images_done == epoch_plan_.images) finish_epoch();
  while (!reached_end() && !stopping()) train_epoch();
  if (!settings_.checkpoint.empty()) save();
  TrainingOutcome outcome;
  outcome.stopped = stopping() && !reached_end();
  outcome.checkpoint = saved_folder_;
  outcome.end = {state_.step, seconds_, weights_hash(runner_->tensors().model), saved_folder_};
  tell([&](Observer& observer) { observer.on_end(outcome.end); });
  return outcome;
}

void Training::train_epoch() {
  loader_->start_epoch(state_.epoch, state_.images_done);
  skipped_.clear();
  loaded_ = 0;
  while (state_.images_done < epoch_plan_.images && state_.step < last_step_ && !stopping()) {
    step();
    const bool epoch_done = state_.images_done == epoch_plan_.images;
    // At the end of an epoch the save waits for the evaluation.
    if (settings_.save_every && state_.step % *settings_.save_every == 0 && !epoch_done) save();
  }
  tell_skipped(skipped_, loaded_, observers_);
  tell_reading_notes();
  if (state_.images_done == epoch_plan_.images) finish_epoch();
}

// What reading the images has shown, once each.
void Training::tell_reading_notes() {
  for (const Dataset* dataset : {job_.data.train.get(), job_.data.validation.get()}) {
    if (!dataset) continue;
    for (const std::string& note : dataset->reading_notes()) {
      if (!told_.insert(note).second) continue;
      tell([&](Observer& observer) { observer.on_note(note); });
    }
  }
}

std::vector<HostBatch> Training::load_window(const WindowPlan& window) {
  std::vector<HostBatch> batches;
  for (std::int64_t i = 0; i < window.batches; ++i) {
    std::optional<HostBatch> batch = loader_->next();
    CONVOY_DCHECK(batch.has_value(), "the epoch ended {} batches early", window.batches - i);
    skipped_.insert(skipped_.end(), batch->skipped.begin(), batch->skipped.end());
    loaded_ += batch->batch_images;
    batches.push_back(std::move(*batch));
  }
  return batches;
}

void Training::step() {
  const Clock::time_point start = Clock::now();
  const double waited = loader_->wait_seconds();
  const WindowPlan plan = epoch_plan_.window_at(state_.images_done);
  // All batches first: images that are passed over change the weight of the others.
  std::vector<HostBatch> batches = load_window(plan);
  Window window;
  window.step = state_.step + 1;
  window.lr = schedule_.at(window.step);
  for (const HostBatch& batch : batches) window.images += batch.images;
  runner_->begin(window);
  for (HostBatch& batch : batches) {
    runner_->add_batch(batch);
    loader_->recycle(std::move(batch));
  }
  const StepResult result = runner_->finish();
  ++state_.step;
  state_.images_done += plan.images;
  const double seconds = seconds_since(start);
  seconds_ += seconds;
  const StepEvent event{state_.step,
                        state_.epoch,
                        result.loss,
                        window.lr,
                        window.images,
                        seconds,
                        loader_->wait_seconds() - waited,
                        result.grad_norm};
  tell([&](Observer& observer) { observer.on_step(event); });
}

bool Training::evaluates() const {
  if (!job_.data.validation || job_.data.validation->size() == 0) return false;
  return settings_.eval_every || !settings_.steps;
}

bool Training::evaluate_if_due() {
  if (!evaluates() || state_.epoch % settings_.eval_every.value_or(1) != 0) return true;
  const std::optional<EvalEvent> event = evaluate(job_, *runner_, state_.epoch, stop_, observers_);
  if (!event) return false;
  tell([&](Observer& observer) { observer.on_eval(*event); });
  tell_reading_notes();
  if (event->top1 > state_.best_top1) {
    state_.best_top1 = event->top1;
    state_.best_epoch = state_.epoch;
  }
  return true;
}

void Training::finish_epoch() {
  if (!evaluate_if_due()) return;
  const std::int64_t epoch = state_.epoch++;
  state_.images_done = 0;
  const bool due =
      !settings_.save_every || state_.step % *settings_.save_every == 0 || reached_end();
  if (settings_.checkpoint.empty() || !due) return;
  save();
  if (state_.best_epoch == epoch) mark_best(settings_.checkpoint, state_.step);
}

void Training::save() {
  if (settings_.checkpoint.empty() || saved_ == state_) return;
  const SavedCheckpoint saved = save_checkpoint(
      settings_.checkpoint, state_.step, checkpoint_content(job_, state_, runner_->tensors()),
      static_cast<int>(settings_.keep));
  saved_ = state_;
  saved_folder_ = saved.folder;
  for (const std::string& note : saved.notes) {
    tell([&](Observer& observer) { observer.on_note(note); });
  }
  tell([&](Observer& observer) { observer.on_checkpoint(saved.folder); });
}

}  // namespace

TrainingOutcome train(const TrainingJob& job, const std::vector<Observer*>& observers,
                      const StopRequest& stop) {
  return Training(job, observers, stop).run();
}

}  // namespace convoy
