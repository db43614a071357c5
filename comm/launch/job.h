// One run of a launcher's command in a session of its own: signals are passed on, stderr is read on
// its way, and nothing of it is left running.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace convoy {

struct JobEnd {
  int code = 0;                        ///< of the command; 128 + signal where it was killed
  int asked = 0;                       ///< SIGINT or SIGTERM: this process was asked to stop
  std::optional<std::string> failure;  ///< the first error line of the ranks
  bool failure_is_last = false;        ///< it stands last on stderr
};

/// Runs `command` to its end. SIGTERM and SIGUSR1 are passed on as SIGUSR1, which mpirun gives to
/// its ranks: they save and leave. SIGINT ends all at once. stdout is the command's own.
JobEnd run_job(const std::vector<std::string>& command);

/// The signal that has ended a rank, as the command's code tells; 0 for none. mpirun's own code for
/// hosts that it cannot reach is 255.
int signal_of(const JobEnd& end);

/// The exit code of `convoy launch`: 130 and 143 where it or a rank was asked to stop, the kind of
/// the first error line, 5 for a rank that a signal killed, else the command's.
int exit_code(const JobEnd& end);

/// Whether the job may go on from a checkpoint: a rank died, or `communication`.
bool worth_a_restart(const JobEnd& end);

/// What ended the job: "[rank 2] communication: ...".
std::string cause_of(const JobEnd& end);

}  // namespace convoy
