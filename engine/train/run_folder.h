// The --checkpoint folder of a run: where its checkpoints go, and whether to start or to go on.
#pragma once

#include <optional>
#include <string>

#include "engine/train/settings.h"

namespace convoy {

struct RunFolder {
  std::string dir;  ///< holds the step folders; empty: nothing is saved
  /// Where to go on from: a step folder that was named, or `dir` for its newest valid one. Empty:
  /// the run starts.
  std::optional<std::string> resume_from;
};

/// Reads --checkpoint, --resume and --weights together, before anything is written. `usage` where
/// they do not fit each other or the folder, `checkpoint` if there is nothing to go on from.
RunFolder find_run_folder(const Settings& settings);

}  // namespace convoy
