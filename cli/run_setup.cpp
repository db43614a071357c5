#include "cli/run_setup.h"

#include <algorithm>

#include "cli/agreement.h"
#include "cli/check_settings.h"
#include "cli/flags.h"
#include "cli/progress_observer.h"
#include "cli/setup.h"
#include "engine/data/decode_image.h"
#include "engine/train/defaults.h"
#include "engine/train/setup.h"
#include "engine/train/stage_cuts.h"
#include "models/models.h"

namespace convoy::cli {
DataPair open_data_for(const Settings& settings) {
  if (!takes_rows(settings.model)) return open_images(settings);
  std::shared_ptr<Network> network = make_model(settings.model, 1);
  return open_rows(settings, network->in(), network->out());
}

TrainingJob make_job(Options& options, convoy::Group* group) {
  Settings& settings = options.settings;
  TrainingJob job;
  settings = resolved_settings(settings, takes_rows(settings.model));
  prepare_workers(settings, group);
  if (settings.stages != "auto") {
    settings.replicas = layout_of(settings, group ? group->size() : 1).replicas;
  }
  job.image_size = image_size_of(settings);
  settings.image_size = job.image_size;
  job.data = open_data_for(settings);
  job.make_network = [name = settings.model,
                      classes = std::max<std::int64_t>(job.data.classes, 1)] {
    return make_model_without_values(name, classes);
  };
  job.network = job.make_network();
  job.group = group;
  settings.classes = job.network->out();
  job.settings = settings;
  job.settings_json = settings_json(options);
  return job;
}

void check_agreement(const TrainingJob& job, convoy::Group& group) {
  Facts facts = common_facts(job.settings, job.settings_json);
  facts.emplace_back("fingerprint of the data", job.data.fingerprint());
  facts.emplace_back("training images", std::to_string(job.data.train->size()));
  check_equal_facts(group.processes(), facts);
}

std::set<std::string> all_device_warnings(const Settings& settings, const Ranks& ranks) {
  const auto all = ranks.all_texts(device_warnings(settings, workers_on_these_cores(ranks)));
  return {all.begin(), all.end()};
}

std::unique_ptr<Observer> display_of(const Options& options, bool leads) {
  if (!leads) return std::make_unique<Observer>();
  return make_display(options.json, options.settings.data);
}

void settle_cuts(Options& options, TrainingJob& job) {
  const std::vector<int> cuts = choose_cuts(job, ranks_of(job));
  if (cuts.empty()) return;
  options.settings.cut = job.settings.cut = cut_text(*job.network, cuts);
  job.settings_json["cut"] = find_flag("cut")->binding.json(options);
}

std::map<std::string, std::string> settings_json(const Options& options) {
  std::map<std::string, std::string> settings;
  for (const Flag& flag : all_flags()) {
    if (flag.group != Group::program) settings[flag.name] = flag.binding.json(options);
  }
  return settings;
}

Versions versions() {
  return {{"convoy", CONVOY_VERSION}, {"compiler", __VERSION__}, {"decoders", decoder_versions()}};
}

}  // namespace convoy::cli
