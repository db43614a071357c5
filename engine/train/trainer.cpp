#include "engine/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "engine/io/checkpoint.h"
#include "engine/nn/state.h"
#include "engine/optim/lr_schedule.h"
#include "engine/train/batch_plan.h"
#include "engine/train/batch_source.h"
#include "engine/train/defaults.h"
#include "engine/train/evaluate.h"
#include "engine/train/progress_state.h"
#include "engine/train/ranks.h"
#include "engine/train/run_folder.h"
#include "engine/train/same_weights.h"
#include "engine/train/setup.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max() / 2;

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
  void open_folder();
  void start();
  void load_weights_file();
  void go_on();
  void set_length();
  void check_rest() const;
  void note(const std::vector<std::string>& lines);
  void announce();
  void train_epoch();
  /// One optimizer step; false at the end of the epoch's images.
  void step();
  void make_source();
  void tell_reading_notes();
  void finish_epoch();
  /// False if it was broken off by the wish to stop: it is made again on resume.
  bool evaluate_if_due();
  void save();
  void write_checkpoint();
  bool reached_end() const;
  /// All images of the epoch are done, its evaluation is not.
  bool evaluation_is_open() const { return state_.images_done == epoch_plan_.images; }
  /// Whether any process has been asked to stop: all ask each other, and learn the same.
  bool agree_to_stop();
  /// `communication` that names the replica whose weights differ from the others'.
  std::string compare_weights(const std::string& when);
  bool evaluates() const;
  void tell(const std::function<void(Observer&)>& event);

  const TrainingJob job_;
  const Settings& settings_;
  const std::vector<Observer*>& observers_;
  const StopRequest& stop_;
  const Ranks ranks_;
  const Division division_;
  EpochPlan epoch_plan_;
  LrSchedule schedule_;
  std::int64_t last_epoch_ = 0;
  std::int64_t last_step_ = 0;
  std::int64_t least_images_ = 1;
  RunFolder folder_;
  std::unique_ptr<CheckpointLock> lock_;
  std::unique_ptr<StepRunner> runner_;
  std::unique_ptr<BatchSource> source_;
  ProgressState state_;
  std::optional<ProgressState> saved_;
  std::string saved_folder_;
  double seconds_ = 0;
  bool stopping_ = false;
  std::set<std::string> told_;
};

Training::Training(const TrainingJob& job, const std::vector<Observer*>& observers,
                   const StopRequest& stop)
    : job_(resolved(job)),
      settings_(job_.settings),
      observers_(observers),
      stop_(stop),
      ranks_(job_.group),
      division_(division_of(settings_, ranks_.replicas())) {
  plan();
  open_folder();
  runner_ = make_runner(job_);
  start();
  make_source();
}

// One process decides what exists: a file may be seen late on other hosts, or not at all.
void Training::open_folder() {
  if (ranks_.leads()) folder_ = find_run_folder(settings_);
  const bool resumes = ranks_.from_leader(folder_.resume_from ? "resume" : "start") == "resume";
  if (ranks_.leads()) return;
  folder_.dir = settings_.checkpoint;
  if (resumes) folder_.resume_from = settings_.checkpoint;
}

void Training::start() {
  const bool writes = ranks_.leads() && !folder_.dir.empty();
  if (writes) lock_ = std::make_unique<CheckpointLock>(folder_.dir);
  if (folder_.resume_from) {
    go_on();
  } else if (!settings_.weights.empty()) {
    load_weights_file();
  }
  if (ranks_.replicas() > 1) compare_weights("at the start");
  if (!writes) return;
  const std::string warning = check_room(folder_.dir, runner_->tensor_bytes());
  if (!warning.empty()) tell([&](Observer& observer) { observer.on_warning(warning); });
}

void Training::load_weights_file() {
  TrainingTensors tensors;
  if (ranks_.leads()) {
    note(load_weights(*job_.network, settings_.weights));
    if (ranks_.replicas() > 1) tensors.model = to_arrays(job_.network->state_dict());
  }
  if (ranks_.replicas() == 1) return;
  tensors.model = ranks_.arrays_from_leader(std::move(tensors.model));
  runner_->load(tensors);
}

void Training::go_on() {
  std::vector<std::string> notes;
  state_ = resume(job_, *folder_.resume_from, ranks_, *runner_, notes);
  saved_ = state_;
  set_length();
  check_rest();
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
  last_epoch_ = settings_.epochs.value_or(settings_.steps ? kUnbounded : 1);
  set_length();
  check_batch_norm(*job_.network, settings_.bn, epoch_plan_.smallest_group(division_),
                   job_.image_size);
  least_images_ = least_micro_batch(*job_.network, settings_.bn, job_.image_size);
}

// The steps of the run and of its learning rate's schedule, from where it stands: with another
// batch size the rest of an epoch takes another number of steps.
void Training::set_length() {
  EpochPlan rest = epoch_plan_;
  rest.images -= state_.images_done;
  last_step_ = settings_.steps.value_or(kUnbounded);
  std::int64_t scheduled = last_step_;
  if (settings_.epochs || !settings_.steps) {
    scheduled = state_.step + rest.steps() + (last_epoch_ - state_.epoch) * epoch_plan_.steps();
  }
  schedule_ = {parse_lr_schedule(settings_.lr_schedule), *settings_.lr, settings_.warmup,
               scheduled};
  last_step_ = std::min(last_step_, scheduled);
}

// With another batch size the rest of the epoch may end in a smaller batch than whole epochs do.
void Training::check_rest() const {
  EpochPlan rest = epoch_plan_;
  rest.images -= state_.images_done;
  if (rest.images <= 0) return;
  check_batch_norm(*job_.network, settings_.bn, rest.smallest_group(division_), job_.image_size);
}

void Training::announce() {
  RunInfo info;
  info.model = job_.network->name();
  info.parameters = job_.network->parameter_count();
  info.classes = job_.network->out();
  info.image_size = job_.image_size;
  info.bn = settings_.bn;
  describe_workers(job_, ranks_, info);
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
  if (evaluation_is_open()) finish_epoch();
  while (!reached_end() && !agree_to_stop()) train_epoch();
  save();
  TrainingOutcome outcome;
  outcome.stopped = agree_to_stop() && (!reached_end() || evaluation_is_open());
  outcome.checkpoint = saved_folder_;
  outcome.end = {state_.step, seconds_, compare_weights("at the end"), saved_folder_};
  ranks_.enter(Activity::finished);
  if (!outcome.stopped) tell([&](Observer& observer) { observer.on_end(outcome.end); });
  return outcome;
}

void Training::train_epoch() {
  source_->start_epoch(state_.epoch, state_.images_done);
  while (state_.images_done < epoch_plan_.images && state_.step < last_step_ && !agree_to_stop()) {
    step();
    const bool epoch_done = state_.images_done == epoch_plan_.images;
    // At the end of an epoch the save waits for the evaluation.
    if (settings_.save_every && state_.step % *settings_.save_every == 0 && !epoch_done) save();
  }
  tell_skipped(source_->skipped(), source_->loaded(), observers_);
  tell_reading_notes();
  if (evaluation_is_open()) finish_epoch();
}

// What reading the images has shown, once each. Several processes may have read the same one.
void Training::tell_reading_notes() {
  for (const Dataset* dataset : {job_.data.train.get(), job_.data.validation.get()}) {
    if (!dataset) continue;
    const std::vector<std::int64_t> all = ranks_.all_numbers(dataset->rotated_images());
    const std::set<std::int64_t> images(all.begin(), all.end());
    const std::string text = rotation_note(std::ssize(images));
    if (!text.empty() && told_.insert(text).second) note({text});
  }
}

void Training::make_source() {
  BatchSourceOptions options;
  options.division = division_;
  options.least_group = least_images_;
  options.skips = settings_.bad_images == "skip";
  options.local_workers = ranks_.local_replicas();
  options.warn = [this](const std::string& text) {
    tell([&](Observer& observer) { observer.on_warning(text); });
  };
  source_ = std::make_unique<BatchSource>(make_loader(job_, job_.data.train, true), settings_.batch,
                                          ranks_, std::move(options));
}

void Training::step() {
  const Clock::time_point start = Clock::now();
  const double waited = source_->wait_seconds();
  const WindowPlan plan = epoch_plan_.window_at(state_.images_done);
  Window window{state_.step + 1, 0, schedule_.at(state_.step + 1)};
  ranks_.begin_step(window.step);
  source_->open(plan, window);
  const StepResult result = runner_->step(window, *source_);
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
                        source_->wait_seconds() - waited,
                        result.grad_norm};
  tell([&](Observer& observer) { observer.on_step(event); });
}

bool Training::evaluates() const {
  if (!job_.data.validation || job_.data.validation->size() == 0) return false;
  return settings_.eval_every || !settings_.steps;
}

bool Training::evaluate_if_due() {
  if (!evaluates() || state_.epoch % settings_.eval_every.value_or(1) != 0) return true;
  runner_->settle_statistics();
  const std::optional<EvalEvent> event = evaluate(
      job_, *runner_, state_.epoch, [this] { return agree_to_stop(); }, observers_);
  ranks_.enter(Activity::computing);
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

bool Training::agree_to_stop() {
  if (!stopping_) stopping_ = ranks_.any(stop_.requested());
  return stopping_;
}

std::string Training::compare_weights(const std::string& when) {
  runner_->settle_statistics();
  const std::vector<std::string> hashes = runner_->weights_hashes();
  check_same_weights(hashes, when);
  return hashes.front();
}

void Training::finish_epoch() {
  if (ranks_.replicas() > 1) compare_weights(fmt::format("after epoch {}", state_.epoch));
  if (!evaluate_if_due()) return;
  const bool best = state_.best_epoch == state_.epoch;
  ++state_.epoch;
  state_.images_done = 0;
  const bool due =
      !settings_.save_every || state_.step % *settings_.save_every == 0 || reached_end();
  if (folder_.dir.empty() || !(due || best)) return;
  save();
  if (best && ranks_.leads()) mark_best(folder_.dir, state_.step);
}

void Training::save() {
  if (folder_.dir.empty() || saved_ == state_) return;
  saved_ = state_;
  if (ranks_.leads()) write_checkpoint();
  ranks_.barrier();  // what follows may count on the checkpoint
}

void Training::write_checkpoint() {
  ranks_.enter(Activity::saving);
  const SavedCheckpoint saved = save_checkpoint(
      folder_.dir, state_.step, checkpoint_content(job_, state_, runner_->tensors()),
      static_cast<int>(settings_.keep));
  ranks_.enter(Activity::computing);
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
