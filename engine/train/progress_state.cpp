#include "engine/train/progress_state.h"

#include "kernels/base/error.h"

namespace convoy {
namespace {

Normalisation normalisation_of(const TrainingJob& job) {
  return job.data.train->normalisation();
}

template <class T>
void check_equal(const char* what, const T& saved, const T& now) {
  CONVOY_CHECK(saved == now, "resume: the checkpoint's {} is {}, this run's is {}", what, saved,
               now);
}

void check_same_run(const TrainingJob& job, const Manifest& saved) {
  check_equal("model", saved.model, job.network->name());
  check_equal("number of classes", saved.classes, job.network->out());
  check_equal("image size", saved.image_size, job.image_size);
  check_equal("seed", saved.seed, job.settings.seed);
  check_equal("optimizer", saved.optimizer, job.settings.optimizer);
  check_class_names(saved.class_names, "the checkpoint", job.data.train->class_names());
  const std::string now = job.data.fingerprint();
  if (saved.data_fingerprint != now) {
    CONVOY_FAIL(data, "resume: the data differ from the checkpoint's: fingerprint {} then, {} now",
                saved.data_fingerprint, now);
  }
}

// Settings that may change over a resume are said, old and new.
void note_changes(const TrainingJob& job, const Manifest& saved, std::vector<std::string>& notes) {
  for (const char* flag : {"batch", "accumulate", "bn", "lr", "lr-schedule", "warmup", "epochs",
                           "momentum", "weight-decay", "micro-batch-size", "micro-batches"}) {
    auto before = saved.settings.find(flag);
    auto now = job.settings_json.find(flag);
    if (before == saved.settings.end() || now == job.settings_json.end()) continue;
    if (before->second != now->second) {
      notes.push_back(
          fmt::format("resume: --{} was {}, is {} now", flag, before->second, now->second));
    }
  }
}

std::string find_folder(const std::string& dir, std::vector<std::string>& notes) {
  NewestCheckpoint newest = find_newest(dir);
  for (const std::string& reason : newest.passed_over) {
    notes.push_back("resume: passed over " + reason);
  }
  if (!newest.folder) {
    CONVOY_FAIL(checkpoint, "resume: {} holds no valid checkpoint{}", dir,
                newest.passed_over.empty() ? "" : "; " + newest.passed_over.front());
  }
  return *newest.folder;
}

}  // namespace

CheckpointContent checkpoint_content(const TrainingJob& job, const ProgressState& state,
                                     TrainingTensors tensors) {
  CheckpointContent content;
  content.model = std::move(tensors.model);
  content.optimizer = std::move(tensors.optimizer);
  Manifest& manifest = content.manifest;
  manifest.model = job.network->name();
  manifest.classes = job.network->out();
  manifest.image_size = job.image_size;
  manifest.epoch = state.epoch;
  manifest.images_done = state.images_done;
  manifest.step = state.step;
  manifest.seed = job.settings.seed;
  manifest.class_names = job.data.train->class_names();
  const Normalisation normalisation = normalisation_of(job);
  manifest.mean.assign(normalisation.mean.begin(), normalisation.mean.end());
  manifest.deviation.assign(normalisation.deviation.begin(), normalisation.deviation.end());
  manifest.settings = job.settings_json;
  manifest.data_fingerprint = job.data.fingerprint();
  manifest.optimizer = job.settings.optimizer;
  manifest.optimizer_scalars = {{"steps", static_cast<double>(state.step)}};
  manifest.lr_position = state.step;
  manifest.metrics = {{"best_top1", state.best_top1},
                      {"best_epoch", static_cast<double>(state.best_epoch)}};
  return content;
}

ProgressState resume(const TrainingJob& job, const std::string& dir, StepRunner& runner,
                     std::vector<std::string>& notes) {
  const std::string folder = find_folder(dir, notes);
  CheckpointContent content = load_checkpoint(folder);
  const Manifest& saved = content.manifest;
  check_same_run(job, saved);
  note_changes(job, saved, notes);
  runner.load({std::move(content.model), std::move(content.optimizer)}, saved.step);
  notes.push_back(fmt::format("resume: from {}: epoch {}, step {}, {} images of the epoch done",
                              folder, saved.epoch, saved.step, saved.images_done));
  ProgressState state;
  state.step = saved.step;
  state.epoch = saved.epoch;
  state.images_done = saved.images_done;
  if (auto best = saved.metrics.find("best_top1"); best != saved.metrics.end()) {
    state.best_top1 = best->second;
  }
  if (auto best = saved.metrics.find("best_epoch"); best != saved.metrics.end()) {
    state.best_epoch = static_cast<std::int64_t>(best->second);
  }
  return state;
}

}  // namespace convoy
