#include "cli/run_setup.h"

#include <algorithm>

#include "cli/flags.h"
#include "cli/setup.h"
#include "engine/data/decode_image.h"
#include "kernels/base/error.h"
#include "models/models.h"

namespace convoy::cli {
namespace {

/// The values that the engine gives to settings left open, so that the run line tells them.
void fill_open(Settings& settings) {
  bool adamw = settings.optimizer == "adamw";
  if (!settings.lr) settings.lr = adamw ? 0.001 : settings.optimizer == "lars" ? 1.0 : 0.1;
  if (!settings.weight_decay) settings.weight_decay = adamw ? 0.01 : 1e-4;
  if (!settings.epochs && !settings.steps) settings.epochs = 1;
  if (!settings.eval_every && !settings.steps) settings.eval_every = 1;
  settings.threads = prepare_device(settings).threads();
}

}  // namespace

DataPair open_data_for(const Settings& settings) {
  if (!takes_rows(settings.model)) return open_images(settings);
  std::shared_ptr<Network> network = make_model(settings.model, 1);
  return open_rows(settings, network->in(), network->out());
}

TrainingJob make_job(Options& options) {
  Settings& settings = options.settings;
  TrainingJob job;
  fill_open(settings);
  job.image_size = image_size_of(settings);
  settings.image_size = job.image_size;
  job.data = open_data_for(settings);
  job.network =
      make_model(settings.model, std::max<std::int64_t>(job.data.classes, 1), settings.seed);
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
