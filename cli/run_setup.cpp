#include "cli/run_setup.h"

#include <algorithm>

#include "cli/flags.h"
#include "cli/setup.h"
#include "engine/data/decode_image.h"
#include "engine/train/defaults.h"
#include "engine/train/setup.h"
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
  settings.threads = threads_per_worker(settings, group);
  for (std::size_t i = 0; i < settings.devices.size(); ++i) prepare_device(settings, i);
  settings.replicas = Ranks(group).replicas();
  job.image_size = image_size_of(settings);
  settings.image_size = job.image_size;
  job.data = open_data_for(settings);
  job.make_network = [name = settings.model, seed = settings.seed,
                      classes = std::max<std::int64_t>(job.data.classes, 1)] {
    return make_model(name, classes, seed);
  };
  job.network = job.make_network();
  job.group = group;
  settings.classes = job.network->out();
  job.settings = settings;
  job.settings_json = settings_json(options);
  return job;
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
