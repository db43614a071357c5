// From what the processes of a job have told to a verdict: who is dead, stuck or slow. Functions of
// the reports and the time alone; the watchdog gathers the reports and acts on the verdict.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/progress.h"
#include "kernels/base/error.h"

namespace convoy {

/// How a process ended, as far as it is known.
struct Ending {
  enum class How { unknown, signal, code, exception };
  How how = How::unknown;
  int value = 0;  ///< of the signal or the exit code
};

/// The connection to a process: `left` after a goodbye, `closed` without one, `unanswered` when
/// nothing that was sent to it got through.
enum class LinkState { open, left, closed, unanswered };

struct WorkerState {
  Progress progress;
  double changed = 0;  ///< when it last showed progress: beats, activity, step or collective
};

/// What is known of one process. Times are seconds of the judge's steady clock.
struct ProcessState {
  int rank = 0;
  std::string host;
  long pid = 0;
  int first_worker = 0;  ///< of all workers
  std::vector<WorkerState> workers;
  double heard = 0;  ///< when the last report came
  LinkState link = LinkState::open;
  double link_changed = 0;
  Ending ending;
};

/// When is it, and how long may a worker stand still while others wait.
struct JudgeTime {
  double now = 0;   ///< seconds of the steady clock
  double wall = 0;  ///< the same moment in seconds since 1970
  double timeout = 60;
};

/// A process that says nothing for this long is not asked what its workers do any more.
constexpr double kSilence = 3;
/// How long the judge waits for the cause of a death.
constexpr double kCauseWait = 0.4;

/// Takes a new report: what differs from the one before is progress.
void take_report(ProcessState& process, const std::vector<Progress>& reports, double now);

/// The failure of the job: the process that died first, else the worker that others wait for. None
/// while all is well, or while the cause of a death may still come.
std::optional<Error> find_failure(const std::vector<ProcessState>& processes,
                                  const JudgeTime& time);

/// Who would be stuck in half of the time.
std::optional<std::string> find_warning(const std::vector<ProcessState>& processes,
                                        const JudgeTime& time);

/// A worker whose own part of a step takes more than 1.5 times the median of those of its kind.
struct SlowWorker {
  int worker = 0;
  std::int64_t step = 0;
  std::string text;
};
std::optional<SlowWorker> find_slow(const std::vector<ProcessState>& processes);

/// "0,1,2", "0-3,7".
std::string list_ranks(const std::vector<int>& ranks);

/// "killed by signal 9 (SIGKILL)", "exited with code 1", ...
std::string describe(const Ending& ending);

}  // namespace convoy
