#include "cli/setup.h"

#include <cstdio>
#include <filesystem>

#include "cli/line_file.h"
#include "cli/read_options.h"
#include "engine/io/checkpoint.h"
#include "engine/io/checkpoint_folder.h"
#include "engine/io/safetensors.h"
#include "engine/io/weights.h"
#include "engine/nn/state.h"
#include "engine/train/setup.h"
#include "kernels/base/error.h"
#include "models/models.h"

namespace convoy::cli {
namespace {

/// --checkpoint itself if it is a step folder, else the newest valid one in it.
std::string step_folder(const std::string& path, std::vector<std::string>& notes) {
  if (path_exists(in_folder(path, kManifestFile)) ||
      step_of_name(std::filesystem::path(path).filename().string())) {
    return path;
  }
  NewestCheckpoint newest = find_newest(path);
  for (const std::string& why : newest.passed_over) notes.push_back("passed over " + why);
  if (!newest.folder) CONVOY_FAIL(checkpoint, "{}: no valid checkpoint is there", path);
  return *newest.folder;
}

void check_agrees(const Options& options, const Manifest& manifest) {
  const Settings& settings = options.settings;
  CONVOY_CHECK(!was_given(options, "model") || settings.model == manifest.model,
               "--model {}: the checkpoint holds {}", settings.model, manifest.model);
  CONVOY_CHECK(!settings.classes || *settings.classes == manifest.classes,
               "--classes {}: the checkpoint has {}", settings.classes.value_or(0),
               manifest.classes);
}

Normalisation normalisation_of(const Manifest& manifest) {
  if (manifest.mean.size() != 3 || manifest.deviation.size() != 3) return kImageNetNormalisation;
  Normalisation normalisation = {};
  for (std::size_t c = 0; c < 3; ++c) {
    normalisation.mean[c] = static_cast<float>(manifest.mean[c]);
    normalisation.deviation[c] = static_cast<float>(manifest.deviation[c]);
  }
  return normalisation;
}

TrainedNetwork from_checkpoint(const Options& options) {
  TrainedNetwork trained;
  std::string folder = step_folder(options.settings.checkpoint, trained.notes);
  CheckpointContent content = load_checkpoint(folder);
  check_agrees(options, content.manifest);
  trained.model = content.manifest.model;
  trained.classes = content.manifest.classes;
  trained.image_size = options.settings.image_size.value_or(content.manifest.image_size);
  trained.state = std::move(content.model);
  trained.manifest = std::move(content.manifest);
  if (!trained.notes.empty()) trained.notes.push_back(fmt::format("weights of {}", folder));
  return trained;
}

/// Outputs of a ResNet's last layer as the file has them; toy and line have theirs anyway.
std::int64_t classes_in(const SafetensorsFile& file, const std::string& model) {
  if (takes_rows(model)) return 1;
  for (const NamedArray& tensor : file.tensors) {
    if (tensor.name.ends_with("fc.weight") && tensor.shape.size() == 2) return tensor.shape[0];
  }
  CONVOY_FAIL(checkpoint, "{}: fc.weight is missing, whose shape tells the classes of {}",
              file.path, model);
}

TrainedNetwork from_weights(const Options& options, std::int64_t image_size) {
  const Settings& settings = options.settings;
  TrainedNetwork trained;
  trained.model = settings.model;
  trained.classes = settings.classes
                        ? *settings.classes
                        : classes_in(read_safetensors(settings.weights), settings.model);
  const auto network = make_model_without_values(trained.model, trained.classes);
  MatchedWeights weights = read_weights(*network, settings.weights);
  trained.state = std::move(weights.tensors);
  trained.notes = std::move(weights.notes);
  trained.image_size = settings.image_size.value_or(image_size);
  return trained;
}

}  // namespace

bool takes_rows(const std::string& model) {
  return model == "toy" || model == "line";
}

Normalisation TrainedNetwork::normalisation() const {
  return manifest ? normalisation_of(*manifest) : kImageNetNormalisation;
}

std::vector<std::string> TrainedNetwork::class_names() const {
  return manifest ? manifest->class_names : std::vector<std::string>();
}

TrainedNetwork read_trained(Options& options, std::int64_t image_size) {
  settle_rivals(options, "checkpoint", "weights");
  const Settings& settings = options.settings;
  CONVOY_CHECK(settings.checkpoint.empty() || settings.weights.empty(),
               "--checkpoint {} and --weights {} exclude each other", settings.checkpoint,
               settings.weights);
  CONVOY_CHECK(!settings.checkpoint.empty() || !settings.weights.empty(),
               "no weights are named; expected --checkpoint DIR or --weights FILE.safetensors");
  return settings.weights.empty() ? from_checkpoint(options) : from_weights(options, image_size);
}

TrainedNetwork read_trained(Options& options, std::int64_t image_size, const Ranks& ranks) {
  TrainedNetwork trained;
  if (ranks.leads()) trained = read_trained(options, image_size);
  trained.model = ranks.from_leader(trained.model);
  trained.classes = std::stoll(ranks.from_leader(std::to_string(trained.classes)));
  trained.image_size = std::stoll(ranks.from_leader(std::to_string(trained.image_size)));
  const std::string text =
      ranks.from_leader(trained.manifest ? manifest_text(*trained.manifest) : std::string());
  if (!text.empty()) trained.manifest = parse_manifest(text, "the checkpoint of rank 0");
  trained.state = ranks.arrays_from_leader(std::move(trained.state));
  return trained;
}

std::shared_ptr<Network> make_network(const TrainedNetwork& trained, const Settings& settings) {
  const Device device = prepare_device(settings).device();
  auto network = make_model_without_values(trained.model, trained.classes);
  network->materialize(device, parameter_type(dtype_of_precision(settings)));
  network->load_state_dict(to_tensors(trained.state, device));
  network->eval();
  return network;
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::fprintf(stderr, "convoy: %s\n", note.c_str());
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& text : warnings) {
    std::fprintf(stderr, "convoy: warning: %s\n", text.c_str());
  }
}

void print_line(const std::string& line) {
  LineFile().write(line);
}

}  // namespace convoy::cli
