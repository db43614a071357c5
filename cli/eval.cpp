// `eval`: loss and accuracy of a trained network on the validation images.
#include <nlohmann/json.hpp>
#include <set>

#include "cli/check_settings.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/job_group.h"
#include "cli/json_lines.h"
#include "cli/metrics_observer.h"
#include "cli/progress_observer.h"
#include "cli/read_options.h"
#include "cli/run_setup.h"
#include "cli/setup.h"
#include "engine/io/text.h"
#include "engine/train/evaluate.h"
#include "engine/train/setup.h"
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

void take_over(Options& options, const TrainedNetwork& trained) {
  Settings& settings = options.settings;
  settings.model = trained.model;
  settings.image_size = trained.image_size;
  settings.classes = trained.classes;
  if (!trained.manifest) return;
  take_over(options, *trained.manifest, "data");
  take_over(options, *trained.manifest, "loss");
}

/// A manifest names the epoch in work.
std::int64_t epochs_done(const Manifest& manifest) {
  return manifest.images_done > 0 ? manifest.epoch : manifest.epoch - 1;
}

void check_data(const TrainedNetwork& trained, const DataPair& data, const Settings& settings) {
  if (!data.validation || data.validation->size() == 0) {
    CONVOY_FAIL(data, "eval: {} has no validation images", settings.data);
  }
  if (trained.class_names().empty()) return;
  check_class_names(trained.class_names(), "the checkpoint", data.train->class_names());
}

// The normalisation is that of the training.
TrainingJob job_of(Options& options, const TrainedNetwork& trained, convoy::Group* group) {
  take_over(options, trained);
  TrainingJob job = make_job(options, group);
  if (trained.manifest) job.normalisation = trained.normalisation();
  check_data(trained, job.data, job.settings);
  return job;
}

void tell_before(const Options& options, const TrainedNetwork& trained, const TrainingJob& job,
                 const Ranks& ranks, Observer& shown) {
  for (const std::string& text : all_device_warnings(options.settings, ranks)) {
    shown.on_warning(text);
  }
  const std::vector<std::string> idle = idle_notes(options, ranks.layout());
  for (const auto* notes : {&options.notes, &idle, &trained.notes, &job.data.notes}) {
    for (const std::string& note : *notes) shown.on_note(note);
  }
}

// Every process runs this; the leading one alone reads the weights and shows.
int eval_in(Options& options, const JobGroup& processes) {
  check_settings(options);
  const Layout layout = layout_of(options.settings, processes.workers());
  TrainedNetwork trained =
      read_trained(options, image_size_of(options.settings), Ranks(processes.group(), layout));
  TrainingJob job = job_of(options, trained, processes.group());
  if (processes.group()) check_agreement(job, *processes.group());
  settle_cuts(options, job);
  const Ranks ranks = ranks_of(job);
  std::unique_ptr<StepRunner> runner = make_runner(job);
  runner->load({std::move(trained.state), {}, 0});
  const auto shown = display_of(options, processes.leads());
  tell_before(options, trained, job, ranks, *shown);
  const std::int64_t epoch = trained.manifest ? epochs_done(*trained.manifest) : 0;
  const EvalEvent event =
      evaluate(job, *runner, epoch, [] { return false; }, {shown.get()}).value();
  const std::vector<std::int64_t> all = ranks.all_numbers(job.data.validation->rotated_images());
  const std::set<std::int64_t> rotated(all.begin(), all.end());
  if (!rotated.empty()) shown->on_note(rotation_note(std::ssize(rotated)));
  if (options.json && processes.leads()) print_line(eval_line(event));
  shown->on_eval(event);
  return 0;
}

}  // namespace

int run_eval(Options& options) {
  JobGroup processes(options);
  return processes.run([&] { return eval_in(options, processes); });
}

}  // namespace convoy::cli
