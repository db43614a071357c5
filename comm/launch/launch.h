// Starts the ranks of a job, and starts them again from the last checkpoint when one has died.
#pragma once

#include <functional>
#include <string>

#include "comm/launch/mpirun_command.h"

namespace convoy {

struct RestartOptions {
  int restarts = 0;
  /// Where the next try goes on: "step 40 of run". Only called after a failure.
  std::function<std::string()> where;
  /// Adds what makes the command go on from a checkpoint.
  std::function<std::vector<std::string>(const std::vector<std::string>& command)> resume;
};

/// Runs the job; returns the exit code. The first failure stands last on stderr.
int launch(const LaunchRequest& request, const RestartOptions& options);

}  // namespace convoy
