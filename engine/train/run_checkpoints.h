// The --checkpoint folder of a run: where it starts from and what it leaves. One process decides
// what exists, reads and writes; all make the same calls.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/io/checkpoint.h"
#include "engine/train/observers.h"
#include "engine/train/progress_state.h"
#include "engine/train/ranks.h"
#include "engine/train/run_folder.h"
#include "engine/train/step_runner.h"
#include "engine/train/trainer.h"

namespace convoy {

class RunCheckpoints {
 public:
  /// Finds out what there is. Arguments outlive this. Collective, as all below.
  RunCheckpoints(const TrainingJob& job, const Ranks& ranks, const Observers& observers);

  /// Locks the folder, and gives `runner` the state to go on from, which is returned, or the
  /// weights of --weights. Lines to print go to `notes`.
  std::optional<ProgressState> start(StepRunner& runner, std::vector<std::string>& notes);
  /// Warns where the disk has no room for what `runner` will save.
  void check_disk(const StepRunner& runner) const;

  bool writes() const { return !folder_.dir.empty(); }
  /// Writes a checkpoint, unless that state was saved already.
  void save(const ProgressState& state, StepRunner& runner);
  /// The checkpoint of that step is the best one so far.
  void mark_as_best(std::int64_t step) const;
  /// The newest that was written; empty if none was.
  const std::string& newest() const { return newest_; }

 private:
  void open();
  void load_weights_file(StepRunner& runner, std::vector<std::string>& notes) const;
  void write(const ProgressState& state, TrainingTensors tensors);

  const TrainingJob& job_;
  const Ranks& ranks_;
  const Observers& observers_;
  RunFolder folder_;
  std::unique_ptr<CheckpointLock> lock_;
  std::optional<ProgressState> saved_;
  std::string newest_;
};

}  // namespace convoy
