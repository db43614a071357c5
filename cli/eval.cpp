// `eval`: loss and accuracy of a trained network on the validation images.
#include <nlohmann/json.hpp>

#include "cli/check_settings.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/json_lines.h"
#include "cli/metrics_observer.h"
#include "cli/progress_observer.h"
#include "cli/read_options.h"
#include "cli/run_setup.h"
#include "cli/setup.h"
#include "engine/io/text.h"
#include "engine/train/evaluate.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

/// The setting `name` as it was in the run behind the checkpoint, unless the user gave it.
void take_over(Options& options, const Manifest& manifest, const std::string& name) {
  auto saved = manifest.settings.find(name);
  if (was_given(options, name) || saved == manifest.settings.end()) return;
  auto text = bytes_of_utf8(nlohmann::json::parse(saved->second).get<std::string>());
  find_flag(name)->binding.set(options, {text, "the checkpoint's " + name});
}

void take_over(Options& options, const LoadedNetwork& loaded) {
  Settings& settings = options.settings;
  settings.model = loaded.network->name();
  settings.image_size = loaded.image_size;
  settings.classes = loaded.classes;
  if (!loaded.manifest) return;
  take_over(options, *loaded.manifest, "data");
  take_over(options, *loaded.manifest, "loss");
}

/// A manifest names the epoch in work.
std::int64_t epochs_done(const Manifest& manifest) {
  return manifest.images_done > 0 ? manifest.epoch : manifest.epoch - 1;
}

void check_data(const LoadedNetwork& loaded, const DataPair& data, const Settings& settings) {
  if (!data.validation || data.validation->size() == 0) {
    CONVOY_FAIL(data, "eval: {} has no validation images", settings.data);
  }
  if (loaded.class_names.empty()) return;
  check_class_names(loaded.class_names, "the checkpoint", data.train->class_names());
}

}  // namespace

int run_eval(Options& options) {
  check_settings(options);
  check_one_worker(options.settings, "convoy eval",
                   [](const char* name) -> const char* { return std::getenv(name); });
  LoadedNetwork loaded = load_network(options, image_size_of(options.settings));
  take_over(options, loaded);
  TrainingJob job;
  job.network = loaded.network;
  job.image_size = loaded.image_size;
  job.data = open_data_for(options.settings);
  job.settings = options.settings;
  if (loaded.manifest) job.normalisation = loaded.normalisation;
  check_data(loaded, job.data, job.settings);
  std::unique_ptr<StepRunner> runner = make_runner(job);
  std::unique_ptr<Observer> shown = make_display(options.json, options.settings.data);
  const std::int64_t epoch = loaded.manifest ? epochs_done(*loaded.manifest) : 0;
  for (const std::string& text : device_warnings(options.settings)) shown->on_warning(text);
  for (const auto* notes : {&options.notes, &loaded.notes, &job.data.notes}) {
    for (const std::string& note : *notes) shown->on_note(note);
  }
  const EvalEvent event =
      evaluate(job, *runner, epoch, [] { return false; }, {shown.get()}).value();
  const auto rotated = std::ssize(job.data.validation->rotated_images());
  if (rotated > 0) shown->on_note(rotation_note(rotated));
  if (options.json) print_line(eval_line(event));
  shown->on_eval(event);
  return 0;
}

}  // namespace convoy::cli
