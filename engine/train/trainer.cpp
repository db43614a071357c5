#include "engine/train/trainer.h"

#include <chrono>
#include <cmath>
#include <set>

#include "engine/train/batch_source.h"
#include "engine/train/defaults.h"
#include "engine/train/evaluate.h"
#include "engine/train/observers.h"
#include "engine/train/ranks.h"
#include "engine/train/run_checkpoints.h"
#include "engine/train/run_plan.h"
#include "engine/train/same_weights.h"
#include "engine/train/setup.h"
#include "engine/train/times_teller.h"
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
  void start();
  void make_source();
  void announce();
  void train_epoch();
  /// One optimizer step.
  void step();
  void tell_reading_notes();
  void finish_epoch();
  /// False if it was broken off by the wish to stop: it is made again on resume.
  bool evaluate_if_due();
  void keep_best(const EvalEvent& event);
  /// Whether any process has been asked to stop: all ask each other, and learn the same.
  bool agree_to_stop();
  /// `communication` that names the replica whose weights differ from the others'.
  std::string compare_weights(const std::string& when);

  const TrainingJob job_;
  const Observers observers_;
  const StopRequest& stop_;
  const Ranks ranks_;
  RunPlan plan_;
  RunCheckpoints checkpoints_;
  std::unique_ptr<StepRunner> runner_;
  std::unique_ptr<BatchSource> source_;
  std::unique_ptr<TimesTeller> times_;
  ProgressState state_;
  double seconds_ = 0;
  bool stopping_ = false;
  std::set<std::string> told_;
};

Training::Training(const TrainingJob& job, const std::vector<Observer*>& observers,
                   const StopRequest& stop)
    : job_(resolved(job)),
      observers_(observers),
      stop_(stop),
      ranks_(ranks_of(job_)),
      plan_(job_, division_of(job_.settings, ranks_.replicas())),
      checkpoints_(job_, ranks_, observers_),
      runner_(make_runner(job_)) {
  start();
  make_source();
  times_ = std::make_unique<TimesTeller>(*runner_, observers_, job_.settings);
}

void Training::start() {
  std::vector<std::string> notes;
  if (const auto saved = checkpoints_.start(*runner_, notes)) {
    state_ = *saved;
    plan_.go_on_from(state_);
    if (plan_.reached_end(state_)) {
      notes.push_back(fmt::format("resume: step {} is the end of this run already", state_.step));
    }
  }
  observers_.note(notes);
  runner_->prepare(plan_.shapes_from(state_));
  if (ranks_.replicas() > 1) compare_weights("at the start");
  checkpoints_.check_disk(*runner_);
}

void Training::make_source() {
  BatchSourceOptions options;
  options.division = plan_.division();
  options.least_group = plan_.least_group();
  options.skips = job_.settings.bad_images == "skip";
  options.local_workers = ranks_.local_workers();
  options.warn = [this](const std::string& text) { observers_.warn(text); };
  source_ = std::make_unique<BatchSource>(make_loader(job_, job_.data.train, true),
                                          job_.settings.batch, ranks_, std::move(options));
}

void Training::announce() {
  RunInfo info;
  info.model = job_.network->name();
  info.parameters = job_.network->parameter_count();
  info.classes = job_.network->out();
  info.image_size = job_.image_size;
  info.bn = job_.settings.bn;
  describe_workers(job_, ranks_, info);
  info.links = runner_->links();
  info.train_images = job_.data.train->size();
  info.val_images = job_.data.validation ? job_.data.validation->size() : 0;
  info.steps_per_epoch = plan_.steps_per_epoch();
  info.total_steps = plan_.last_step();
  info.start_step = state_.step;
  info.start_epoch = state_.epoch;
  info.class_names = job_.data.train->class_names();
  observers_.tell([&](Observer& observer) { observer.on_run(info); });
  observers_.note(job_.data.notes);
}

TrainingOutcome Training::run() {
  announce();
  if (plan_.evaluation_is_open(state_)) finish_epoch();
  while (!plan_.reached_end(state_) && !agree_to_stop()) train_epoch();
  checkpoints_.save(state_, *runner_);
  TrainingOutcome outcome;
  outcome.stopped =
      agree_to_stop() && (!plan_.reached_end(state_) || plan_.evaluation_is_open(state_));
  outcome.checkpoint = checkpoints_.newest();
  outcome.end = {state_.step, seconds_, compare_weights("at the end"), checkpoints_.newest()};
  ranks_.enter(Activity::finished);
  if (!outcome.stopped) {
    observers_.tell([&](Observer& observer) { observer.on_end(outcome.end); });
  }
  return outcome;
}

void Training::train_epoch() {
  source_->start_epoch(state_.epoch, state_.images_done);
  while (plan_.epoch_goes_on(state_) && !agree_to_stop()) {
    step();
    if (plan_.saves_within(state_.step) && !plan_.evaluation_is_open(state_)) {
      checkpoints_.save(state_, *runner_);
    }
  }
  tell_skipped(source_->skipped(), source_->loaded(), observers_.all());
  tell_reading_notes();
  times_->tell();
  if (plan_.evaluation_is_open(state_)) finish_epoch();
}

// What reading the images has shown, once each. Several processes may have read the same one.
void Training::tell_reading_notes() {
  for (const Dataset* dataset : {job_.data.train.get(), job_.data.validation.get()}) {
    if (!dataset) continue;
    const std::vector<std::int64_t> all = ranks_.all_numbers(dataset->rotated_images());
    const std::set<std::int64_t> images(all.begin(), all.end());
    const std::string text = rotation_note(std::ssize(images));
    if (!text.empty() && told_.insert(text).second) observers_.note({text});
  }
}

void Training::step() {
  const Clock::time_point start = Clock::now();
  const double waited = source_->wait_seconds();
  const WindowPlan plan = plan_.next_window(state_);
  Window window{state_.step + 1, 0, plan_.lr_at(state_.step + 1)};
  ranks_.begin_step(window.step);
  source_->open(plan, window);
  times_->before_step();
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
  observers_.tell([&](Observer& observer) { observer.on_step(event); });
}

bool Training::evaluate_if_due() {
  if (!plan_.evaluates_after(state_.epoch)) return true;
  runner_->settle_statistics();
  const std::optional<EvalEvent> event = evaluate(
      job_, *runner_, state_.epoch, [this] { return agree_to_stop(); }, observers_.all());
  ranks_.enter(Activity::computing);
  if (!event) return false;
  observers_.tell([&](Observer& observer) { observer.on_eval(*event); });
  tell_reading_notes();
  keep_best(*event);
  return true;
}

void Training::keep_best(const EvalEvent& event) {
  const bool by_loss = std::isnan(event.top1);
  const double value = by_loss ? event.loss : event.top1;
  const bool better = by_loss ? value < state_.best_value : value > state_.best_value;
  if (state_.best_epoch != 0 && !better) return;
  state_.best_epoch = state_.epoch;
  state_.best_value = value;
}

bool Training::agree_to_stop() {
  if (!stopping_) stopping_ = ranks_.any(stop_.requested());
  return stopping_;
}

std::string Training::compare_weights(const std::string& when) {
  runner_->settle_statistics();
  const std::vector<std::string> hashes = runner_->weights_hashes();
  check_same_weights(hashes, when, ranks_.layout());
  return hashes.front();
}

void Training::finish_epoch() {
  if (ranks_.replicas() > 1) compare_weights(fmt::format("after epoch {}", state_.epoch));
  if (!evaluate_if_due()) return;
  const bool best = state_.best_epoch == state_.epoch;
  ++state_.epoch;
  state_.images_done = 0;
  if (!plan_.saves_after_epoch(state_) && !best) return;
  checkpoints_.save(state_, *runner_);
  if (best) checkpoints_.mark_as_best(state_.step);
}

}  // namespace

TrainingOutcome train(const TrainingJob& job, const std::vector<Observer*>& observers,
                      const StopRequest& stop) {
  return Training(job, observers, stop).run();
}

}  // namespace convoy
