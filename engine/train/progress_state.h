// Where a run stands, and how that goes into checkpoints and comes back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/io/checkpoint.h"
#include "engine/train/step_runner.h"
#include "engine/train/trainer.h"

namespace convoy {

/// `images_done` equal to the epoch's images means: its training is done, its evaluation is not.
struct ProgressState {
  std::int64_t step = 0;         ///< optimizer steps made
  std::int64_t epoch = 1;        ///< the one in work
  std::int64_t images_done = 0;  ///< positions of its order that are done
  double best_top1 = -1;
  std::int64_t best_epoch = 0;

  friend bool operator==(const ProgressState&, const ProgressState&) = default;
};

/// Everything that a checkpoint holds.
CheckpointContent checkpoint_content(const TrainingJob& job, const ProgressState& state,
                                     TrainingTensors tensors);

/// The newest valid checkpoint of `dir` (or the step folder itself), loaded into `runner`. Lines to
/// print go to `notes`. `checkpoint` if there is none; `usage` or `data` if the run is another one:
/// model, classes, image size, seed, optimizer, data.
ProgressState resume(const TrainingJob& job, const std::string& dir, StepRunner& runner,
                     std::vector<std::string>& notes);

}  // namespace convoy
