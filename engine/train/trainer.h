// The training loop: epochs, windows, evaluation, checkpoints. It knows images, steps and files,
// but not the workers: those are behind StepRunner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/group.h"
#include "engine/data/open_dataset.h"
#include "engine/nn/network.h"
#include "engine/parallel/bucket_plan.h"
#include "engine/train/observer.h"
#include "engine/train/settings.h"
#include "engine/train/step_runner.h"
#include "engine/train/stop_request.h"

namespace convoy {

/// What a run is made of. The network is drawn but neither moved nor loaded yet.
struct TrainingJob {
  Settings settings;
  /// Settings as they shall stand in the checkpoint: flag name to JSON text.
  std::map<std::string, std::string> settings_json;
  std::shared_ptr<Network> network;
  /// Draws another network like it, for the other replicas of this process.
  std::function<std::shared_ptr<Network>()> make_network;
  /// All workers of the run; null: there is one. It outlives the job.
  Group* group = nullptr;
  BucketLimits buckets;  ///< of gradients that travel together
  /// Forwards of each worker before its first backward, of 1f1b; empty: its own.
  std::vector<int> warm_up = {};
  DataPair data;
  std::int64_t image_size = 0;
  /// What the network was trained with, where that is not the training set's own.
  std::optional<Normalisation> normalisation;
};

struct TrainingOutcome {
  bool stopped = false;    ///< by the stop request, after saving where --checkpoint is given
  std::string checkpoint;  ///< newest folder written, empty if none
  EndEvent end;
};

/// Trains as `job.settings` say, telling `observers` what happens. Returns early, saved, when
/// `stop` is requested in any process. Throws what goes wrong; the newest checkpoint is whole then.
/// All processes of `job.group` make this call; rank 0's reads and writes the --checkpoint folder,
/// the others' observers hear the same events.
TrainingOutcome train(const TrainingJob& job, const std::vector<Observer*>& observers,
                      const StopRequest& stop);

/// The image size of a run: --image-size, else 32 for idx and CIFAR data and 224 otherwise.
std::int64_t image_size_of(const Settings& settings);

/// Opens settings.data for a network that takes images, or rows of `features` with `targets` each.
DataPair open_images(const Settings& settings);
DataPair open_rows(const Settings& settings, std::int64_t features, std::int64_t targets);

/// The runner of this process's devices for `job`: a network and an optimizer on each. The first
/// one's is job.network.
std::unique_ptr<StepRunner> make_runner(const TrainingJob& job);

/// `usage` if a batch norm would see one value per channel in a micro-batch of `images` images:
/// layer, images, sizes and the flags to change are named.
void check_batch_norm(const Network& network, const Settings& settings, std::int64_t images,
                      std::int64_t image_size);

/// The fewest images that a micro-batch may have in training: 2 where the network's maps shrink to
/// one place, else 1.
std::int64_t least_micro_batch(const Network& network, const std::string& mode,
                               std::int64_t image_size);

}  // namespace convoy
