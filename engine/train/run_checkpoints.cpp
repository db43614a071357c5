#include "engine/train/run_checkpoints.h"

#include <utility>

#include "engine/nn/state.h"

namespace convoy {

RunCheckpoints::RunCheckpoints(const TrainingJob& job, const Ranks& ranks,
                               const Observers& observers)
    : job_(job), ranks_(ranks), observers_(observers) {
  open();
}

// A file may be seen late on other hosts, or not at all.
void RunCheckpoints::open() {
  if (ranks_.leads()) folder_ = find_run_folder(job_.settings);
  const bool resumes = ranks_.from_leader(folder_.resume_from ? "resume" : "start") == "resume";
  if (ranks_.leads()) return;
  folder_.dir = job_.settings.checkpoint;
  if (resumes) folder_.resume_from = job_.settings.checkpoint;
}

std::optional<ProgressState> RunCheckpoints::start(StepRunner& runner,
                                                   std::vector<std::string>& notes) {
  if (ranks_.leads() && writes()) lock_ = std::make_unique<CheckpointLock>(folder_.dir);
  if (folder_.resume_from) {
    saved_ = resume(job_, *folder_.resume_from, ranks_, runner, notes);
  } else if (!job_.settings.weights.empty()) {
    load_weights_file(runner, notes);
  }
  return saved_;
}

void RunCheckpoints::load_weights_file(StepRunner& runner, std::vector<std::string>& notes) const {
  TrainingTensors tensors;
  if (ranks_.leads()) {
    MatchedWeights matched = read_weights(*job_.network, job_.settings.weights);
    tensors.model = std::move(matched.tensors);
    notes.insert(notes.end(), matched.notes.begin(), matched.notes.end());
  }
  tensors.model = ranks_.arrays_from_leader(std::move(tensors.model));
  runner.load(tensors);
}

void RunCheckpoints::check_disk(const StepRunner& runner) const {
  if (!ranks_.leads() || !writes()) return;
  const std::string warning = check_room(folder_.dir, runner.tensor_bytes());
  if (!warning.empty()) observers_.warn(warning);
}

void RunCheckpoints::save(const ProgressState& state, StepRunner& runner) {
  if (!writes() || saved_ == state) return;
  saved_ = state;
  ranks_.enter(Activity::saving);
  TrainingTensors tensors = runner.tensors();
  if (ranks_.leads()) write(state, std::move(tensors));
  ranks_.enter(Activity::computing);
  ranks_.barrier();  // what follows may count on the checkpoint
}

void RunCheckpoints::write(const ProgressState& state, TrainingTensors tensors) {
  const SavedCheckpoint saved =
      save_checkpoint(folder_.dir, state.step, checkpoint_content(job_, state, std::move(tensors)),
                      static_cast<int>(job_.settings.keep));
  newest_ = saved.folder;
  observers_.note(saved.notes);
  observers_.tell([&](Observer& observer) { observer.on_checkpoint(saved.folder); });
}

void RunCheckpoints::mark_as_best(std::int64_t step) const {
  if (ranks_.leads() && writes()) mark_best(folder_.dir, step);
}

}  // namespace convoy
