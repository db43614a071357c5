// `convert`: the weights of a checkpoint or of a safetensors file as a safetensors file with
// torchvision's names, complete: a counter that the source lacks is written as 0.
#include <filesystem>

#include "cli/check_settings.h"
#include "cli/commands.h"
#include "cli/json_lines.h"
#include "cli/progress_format.h"
#include "cli/setup.h"
#include "engine/nn/state.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

constexpr const char* kUsage =
    "convert needs a source and a target: convoy convert FROM TO.safetensors";

/// FROM as --checkpoint, if it is a folder, or as --weights; what variables say of them is not for
/// this command.
Options with_source(Options options, const std::string& source) {
  options.settings.checkpoint.clear();
  options.settings.weights.clear();
  std::error_code ignored;
  bool folder = std::filesystem::is_directory(source, ignored);
  options.settings.precision = "fp32";  // of files
  (folder ? options.settings.checkpoint : options.settings.weights) = source;
  return options;
}

}  // namespace

int run_convert(Options& options) {
  CONVOY_CHECK(options.operands.size() == 2, "{}", kUsage);
  const std::string& source = options.operands[0];
  const std::string& target = options.operands[1];
  CONVOY_CHECK(target.ends_with(".safetensors"), "convert: {} does not end in .safetensors",
               target);
  check_settings(options);
  Options with = with_source(options, source);
  const TrainedNetwork trained = read_trained(with, kImageSize);
  const std::shared_ptr<Network> network = make_network(trained, with.settings);
  save_weights(*network, target);
  print_notes(options.notes);
  print_notes(trained.notes);
  std::size_t entries = network->state_dict().size();
  std::int64_t parameters = network->parameter_count();
  std::string hash = weights_hash(*network);
  if (options.json) {
    JsonObject line{{"from", source},           {"to", target},
                    {"model", network->name()}, {"entries", entries},
                    {"parameters", parameters}, {"weights_hash", hash}};
    print_line(line.text());
  } else {
    print_line(fmt::format("wrote {}: {}, {} entries, {} parameters, weights hash {}", target,
                           network->name(), entries, grouped(parameters), hash));
  }
  return 0;
}

}  // namespace convoy::cli
