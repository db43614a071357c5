// From options to the things that commands work with: a device, a network with its weights.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "engine/data/dataset.h"
#include "engine/io/manifest.h"
#include "engine/nn/network.h"
#include "engine/train/ranks.h"

namespace convoy::cli {

/// Whether a model takes rows of numbers and regresses; the others take images. Asking the network
/// itself would mean to draw its weights.
bool takes_rows(const std::string& model);

/// A trained network in host memory and what its user has to know of its training.
struct TrainedNetwork {
  std::string model;
  std::int64_t classes = 0;
  std::int64_t image_size = 0;
  std::optional<Manifest> manifest;  ///< of a checkpoint
  std::vector<NamedArray> state;
  std::vector<std::string> notes;

  /// The checkpoint's; without one ImageNet's, and no names.
  Normalisation normalisation() const;
  std::vector<std::string> class_names() const;
};

/// The network of --checkpoint (a step folder, or the newest valid one of a run) or of --weights,
/// whose images have `image_size` unless --image-size or the checkpoint says otherwise. `usage`
/// without either; `checkpoint` where the files are no good.
TrainedNetwork read_trained(Options& options, std::int64_t image_size);
/// The leading process reads it for all. Collective; notes are the leader's.
TrainedNetwork read_trained(Options& options, std::int64_t image_size, const Ranks& ranks);

/// It, on the first of --devices, in --precision and eval mode.
std::shared_ptr<Network> make_network(const TrainedNetwork& trained, const Settings& settings);

/// Prints notes, or warnings, as messages on stderr.
void print_notes(const std::vector<std::string>& notes);
void print_warnings(const std::vector<std::string>& warnings);

/// Writes one line to stdout; `resource` if it cannot be written.
void print_line(const std::string& line);

}  // namespace convoy::cli
