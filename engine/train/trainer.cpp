#include "engine/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "engine/io/checkpoint.h"
#include "engine/io/hash.h"
#include "engine/nn/state.h"
#include "engine/optim/lr_schedule.h"
#include "engine/train/batch_plan.h"
#include "engine/train/defaults.h"
#include "engine/train/evaluate.h"
#include "engine/train/progress_state.h"
#include "engine/train/run_folder.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

TrainingJob resolved(TrainingJob job) {
  job.settings = resolved_settings(job.settings, job.network->takes_rows());
  return job;
}

class Training {
 public:
  Training(const TrainingJob& job, const std::vector<Observer*>& observers,
           const StopRequest& stop);
  TrainingOutcome run();

 private:
  void plan();
  void go_on();
  void note(const std::vector<std::string>& lines);
  void announce();
  void train_epoch();
  /// One optimizer step; false at the end of the epoch's images.
  void step();
  HostBatch load_batch();
  void drop_small_rest(HostBatch& batch);
  std::vector<HostBatch> load_ahead(const WindowPlan& plan, Window& window);
  MicroBatchRule micro_batches() const {
    return {settings_.micro_batch_size, settings_.micro_batches};
  }
  void tell_reading_notes();
  void finish_epoch();
  /// False if it was broken off by the wish to stop: it is made again on resume.
  bool evaluate_if_due();
  void save();
  bool reached_end() const;
  /// All images of the epoch are done, its evaluation is not.
  bool evaluation_is_open() const { return state_.images_done == epoch_plan_.images; }
  bool stopping() const { return stop_.requested(); }
  bool evaluates() const;
  void tell(const std::function<void(Observer&)>& event);

  const TrainingJob job_;
  const Settings& settings_;
  const std::vector<Observer*>& observers_;
  const StopRequest& stop_;
  EpochPlan epoch_plan_;
  LrSchedule schedule_;
  std::int64_t last_epoch_ = 0;
  std::int64_t last_step_ = 0;
  std::int64_t least_images_ = 1;
  RunFolder folder_;
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
    : job_(resolved(job)), settings_(job_.settings), observers_(observers), stop_(stop) {
  plan();
  folder_ = find_run_folder(settings_);
  runner_ = make_runner(job_);
  if (!folder_.dir.empty()) lock_ = std::make_unique<CheckpointLock>(folder_.dir);
  if (folder_.resume_from) {
    go_on();
  } else if (!settings_.weights.empty()) {
    note(load_weights(*job_.network, settings_.weights));
  }
  if (folder_.dir.empty()) return;
  const std::string warning = check_room(folder_.dir, runner_->tensor_bytes());
  if (!warning.empty()) tell([&](Observer& observer) { observer.on_warning(warning); });
}

void Training::go_on() {
  std::vector<std::string> notes;
  state_ = resume(job_, *folder_.resume_from, *runner_, notes);
  saved_ = state_;
  if (reached_end()) {
    notes.push_back(fmt::format("resume: step {} is the end of this run already", state_.step));
  }
  note(notes);
}

void Training::note(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    tell([&](Observer& observer) { observer.on_note(line); });
  }
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
  schedule_ = {parse_lr_schedule(settings_.lr_schedule), *settings_.lr, settings_.warmup,
               scheduled};
  last_step_ = std::min(last_step_, scheduled);
  check_batch_norm(*job_.network, settings_.bn, epoch_plan_.smallest_micro_batch(micro_batches()),
                   job_.image_size);
  least_images_ = least_micro_batch(*job_.network, settings_.bn, job_.image_size);
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
  info.start_epoch = state_.epoch;
  info.class_names = job_.data.train->class_names();
  tell([&](Observer& observer) { observer.on_run(info); });
  note(job_.data.notes);
}

bool Training::reached_end() const {
  return state_.step >= last_step_ || state_.epoch > last_epoch_;
}

TrainingOutcome Training::run() {
  announce();
  loader_ = make_loader(job_, job_.data.train, true);
  if (evaluation_is_open()) finish_epoch();
  while (!reached_end() && !stopping()) train_epoch();
  save();
  TrainingOutcome outcome;
  outcome.stopped = stopping() && (!reached_end() || evaluation_is_open());
  outcome.checkpoint = saved_folder_;
  outcome.end = {state_.step, seconds_, weights_hash(runner_->tensors().model), saved_folder_};
  if (!outcome.stopped) tell([&](Observer& observer) { observer.on_end(outcome.end); });
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
  if (evaluation_is_open()) finish_epoch();
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

HostBatch Training::load_batch() {
  std::optional<HostBatch> batch = loader_->next();
  CONVOY_DCHECK(batch.has_value(), "the epoch ended before its last batch");
  skipped_.insert(skipped_.end(), batch->skipped.begin(), batch->skipped.end());
  loaded_ += batch->batch_images;
  drop_small_rest(*batch);
  return std::move(*batch);
}

// Bad images that were passed over may leave a micro-batch that batch norm cannot normalise.
void Training::drop_small_rest(HostBatch& batch) {
  while (batch.images > 0 && batch.images < batch.batch_images) {
    const std::int64_t last = split_batch(batch.images, micro_batches()).back();
    if (last >= least_images_) return;
    const std::string text = fmt::format(
        "left out {} image(s) of step {}: batch norm needs {} in a micro-batch, the "
        "others were passed over",
        last, state_.step + 1, least_images_);
    tell([&](Observer& observer) { observer.on_warning(text); });
    batch.images -= last;
  }
}

// With bad images passed over, only loading tells how many there are, and so each one's weight.
std::vector<HostBatch> Training::load_ahead(const WindowPlan& plan, Window& window) {
  std::vector<HostBatch> batches;
  window.images = plan.images;
  if (settings_.bad_images != "skip") return batches;
  window.images = 0;
  for (std::int64_t i = 0; i < plan.batches; ++i) {
    batches.push_back(load_batch());
    window.images += batches.back().images;
  }
  return batches;
}

void Training::step() {
  const Clock::time_point start = Clock::now();
  const double waited = loader_->wait_seconds();
  const WindowPlan plan = epoch_plan_.window_at(state_.images_done);
  Window window{state_.step + 1, 0, schedule_.at(state_.step + 1)};
  std::vector<HostBatch> batches = load_ahead(plan, window);
  runner_->begin(window);
  for (std::int64_t i = 0; i < plan.batches; ++i) {
    HostBatch batch =
        batches.empty() ? load_batch() : std::move(batches[static_cast<std::size_t>(i)]);
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
  const bool by_loss = std::isnan(event->top1);
  const double value = by_loss ? event->loss : event->top1;
  const bool better = by_loss ? value < state_.best_value : value > state_.best_value;
  if (state_.best_epoch == 0 || better) {
    state_.best_epoch = state_.epoch;
    state_.best_value = value;
  }
  return true;
}

void Training::finish_epoch() {
  if (!evaluate_if_due()) return;
  const bool best = state_.best_epoch == state_.epoch;
  ++state_.epoch;
  state_.images_done = 0;
  const bool due =
      !settings_.save_every || state_.step % *settings_.save_every == 0 || reached_end();
  if (folder_.dir.empty() || !(due || best)) return;
  save();
  if (best) mark_best(folder_.dir, state_.step);
}

void Training::save() {
  if (folder_.dir.empty() || saved_ == state_) return;
  const SavedCheckpoint saved = save_checkpoint(
      folder_.dir, state_.step, checkpoint_content(job_, state_, runner_->tensors()),
      static_cast<int>(settings_.keep));
  saved_ = state_;
  saved_folder_ = saved.folder;
  note(saved.notes);
  tell([&](Observer& observer) { observer.on_checkpoint(saved.folder); });
}

}  // namespace

TrainingOutcome train(const TrainingJob& job, const std::vector<Observer*>& observers,
                      const StopRequest& stop) {
  return Training(job, observers, stop).run();
}

}  // namespace convoy
