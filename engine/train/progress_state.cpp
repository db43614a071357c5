#include "engine/train/progress_state.h"

#include <cstdlib>
#include <optional>
#include <set>
#include <sstream>

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

// Whether two JSON texts say the same; numbers may be written in several ways.
bool same_json(const std::string& a, const std::string& b) {
  if (a == b) return true;
  auto number = [](const std::string& text) -> std::optional<double> {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') return {};
    return value;
  };
  return number(a) && number(a) == number(b);
}

// Flags that say where to write and how much to show, not what to compute.
bool is_about_output(const std::string& flag) {
  static const std::set<std::string> flags = {"checkpoint", "resume",      "keep",   "save-every",
                                              "log",        "trace",       "report", "tensorboard",
                                              "weights",    "comm-timeout"};
  return flags.contains(flag);
}

void check_same_setting(const TrainingJob& job, const Manifest& saved, const char* flag) {
  auto before = saved.settings.find(flag);
  auto now = job.settings_json.find(flag);
  if (before == saved.settings.end() || now == job.settings_json.end()) return;
  CONVOY_CHECK(same_json(before->second, now->second),
               "resume: --{} is {}, the checkpoint's run had {}", flag, now->second,
               before->second);
}

// The momentum buffers of a run exist or not.
void check_momentum(const TrainingJob& job, const Manifest& saved) {
  auto before = saved.settings.find("momentum");
  if (job.settings.optimizer != "sgd" || before == saved.settings.end()) return;
  const bool had = !same_json(before->second, "0");
  CONVOY_CHECK(had == (job.settings.momentum != 0),
               "resume: --momentum is {}, the checkpoint's run had {}", job.settings.momentum,
               before->second);
}

void check_same_run(const TrainingJob& job, const Manifest& saved) {
  check_equal("model", saved.model, job.network->name());
  check_equal("number of classes", saved.classes, job.network->out());
  check_equal("image size", saved.image_size, job.image_size);
  check_equal("seed", saved.seed, job.settings.seed);
  check_equal("optimizer", saved.optimizer, job.settings.optimizer);
  for (const char* flag : {"loss", "precision"}) check_same_setting(job, saved, flag);
  check_momentum(job, saved);
  check_class_names(saved.class_names, "the checkpoint", job.data.train->class_names());
  const std::string now = job.data.fingerprint();
  if (saved.data_fingerprint != now) {
    CONVOY_FAIL(data, "resume: the data differ from the checkpoint's: fingerprint {} then, {} now",
                saved.data_fingerprint, now);
  }
}

// Settings that may change over a resume are said, old and new.
void note_changes(const TrainingJob& job, const Manifest& saved, std::vector<std::string>& notes) {
  for (const auto& [flag, now] : job.settings_json) {
    auto before = saved.settings.find(flag);
    if (before == saved.settings.end() || is_about_output(flag)) continue;
    if (same_json(before->second, now)) continue;
    notes.push_back(fmt::format("resume: --{} was {}, is {} now", flag, before->second, now));
  }
}

double figure(const std::map<std::string, double>& figures, const char* name) {
  auto found = figures.find(name);
  if (found == figures.end()) CONVOY_FAIL(checkpoint, "resume: the manifest lacks {}", name);
  return found->second;
}

// `from` itself if it is one checkpoint: what was named is never replaced by another.
std::string find_folder(const std::string& from, std::vector<std::string>& notes) {
  if (!holds_run(from)) return from;
  NewestCheckpoint newest = find_newest(from);
  for (const std::string& reason : newest.passed_over) {
    notes.push_back("resume: passed over " + reason);
  }
  if (!newest.folder) {
    CONVOY_FAIL(checkpoint, "resume: {} holds no valid checkpoint{}", from,
                newest.passed_over.empty() ? "" : "; " + newest.passed_over.front());
  }
  return *newest.folder;
}

// What one process reads and all need.
struct Saved {
  ProgressState state;
  TrainingTensors tensors;
};

Saved read_saved(const TrainingJob& job, const std::string& from, std::vector<std::string>& notes) {
  const std::string folder = find_folder(from, notes);
  CheckpointContent content = load_checkpoint(folder);
  const Manifest& manifest = content.manifest;
  check_same_run(job, manifest);
  note_changes(job, manifest, notes);
  notes.push_back(fmt::format("resume: from {}: epoch {}, step {}, {} images of the epoch done",
                              folder, manifest.epoch, manifest.step, manifest.images_done));
  Saved saved;
  saved.state.step = manifest.step;
  saved.state.epoch = manifest.epoch;
  saved.state.images_done = manifest.images_done;
  saved.state.best_value = figure(manifest.metrics, "best_value");
  saved.state.best_epoch = static_cast<std::int64_t>(figure(manifest.metrics, "best_epoch"));
  saved.tensors = {std::move(content.model), std::move(content.optimizer),
                   static_cast<std::int64_t>(figure(manifest.optimizer_scalars, "steps"))};
  return saved;
}

// A state on its way to the other processes, with every bit of its numbers.
std::string text_of(const ProgressState& state) {
  return fmt::format("{} {} {} {} {}", state.step, state.epoch, state.images_done, state.best_epoch,
                     state.best_value);
}

ProgressState state_of(const std::string& text) {
  ProgressState state;
  std::istringstream in(text);
  std::string best_value;  // may be nan
  in >> state.step >> state.epoch >> state.images_done >> state.best_epoch >> best_value;
  state.best_value = std::strtod(best_value.c_str(), nullptr);
  return state;
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
  manifest.optimizer_scalars = {{"steps", static_cast<double>(tensors.optimizer_steps)}};
  manifest.lr_position = state.step;
  manifest.metrics = {{"best_value", state.best_value},
                      {"best_epoch", static_cast<double>(state.best_epoch)}};
  return content;
}

ProgressState resume(const TrainingJob& job, const std::string& from, const Ranks& ranks,
                     StepRunner& runner, std::vector<std::string>& notes) {
  Saved saved;
  if (ranks.leads()) saved = read_saved(job, from, notes);
  saved.state = state_of(ranks.from_leader(text_of(saved.state)));
  TrainingTensors& tensors = saved.tensors;
  tensors.optimizer_steps = std::stoll(ranks.from_leader(std::to_string(tensors.optimizer_steps)));
  tensors.model = ranks.arrays_from_leader(std::move(tensors.model));
  tensors.optimizer = ranks.arrays_from_leader(std::move(tensors.optimizer));
  runner.load(tensors);
  return saved.state;
}

}  // namespace convoy
