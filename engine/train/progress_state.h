// Where a run stands, and how that goes into checkpoints and comes back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/io/checkpoint.h"
#include "engine/train/ranks.h"
#include "engine/train/step_runner.h"
#include "engine/train/trainer.h"

namespace convoy {

/// `images_done` equal to the epoch's images means: its training is done, its evaluation is not.
struct ProgressState {
  std::int64_t step = 0;         ///< optimizer steps made
  std::int64_t epoch = 1;        ///< the one in work
  std::int64_t images_done = 0;  ///< positions of its order that are done
  std::int64_t best_epoch = 0;   ///< by top-1, or by loss where samples have no class; 0: none yet
  double best_value = 0;         ///< that top-1, or that loss

  friend bool operator==(const ProgressState&, const ProgressState&) = default;
};

/// Everything that a checkpoint holds.
CheckpointContent checkpoint_content(const TrainingJob& job, const ProgressState& state,
                                     TrainingTensors tensors);

/// The state of `from`, a step folder or a run's folder (then its newest valid one), loaded into
/// `runner`. The leading process reads it and sends it to the others. Lines to print go to `notes`.
/// `checkpoint` if there is none; `usage` or `data` if the run is another one: model, classes,
/// image size, seed, optimizer, loss, precision, data.
ProgressState resume(const TrainingJob& job, const std::string& from, const Ranks& ranks,
                     StepRunner& runner, std::vector<std::string>& notes);

}  // namespace convoy
