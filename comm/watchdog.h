// Watches over all workers of a job beside the data path: a thread of each process tells the
// others at least each second what its workers do, over TCP connections of its own, and finds out
// who is dead, stuck or slow. It is never behind a collective, MPI or a compute stream.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/progress.h"
#include "comm/world.h"
#include "kernels/base/error.h"

namespace convoy {

struct WatchdogOptions {
  double timeout = 60;  ///< seconds for the meeting, and for a worker that stands still
  std::string iface;    ///< network interface; empty: CONVOY_IFACE, else chosen
  /// Called at most once in each process, from the watchdog's thread, with the first failure of the
  /// job. Empty: one process of the job prints the program's error line, and all leave by _exit
  /// with the code of its kind.
  std::function<void(const Error&)> on_failure;
  /// Lines for people, on one process of the job. Empty: dropped.
  std::function<void(const std::string&)> on_note;
};

/// Made and destroyed by all processes together. Thread-safe.
class Watchdog {
 public:
  /// Gives each process the text of process 0; called once by the constructor, and only where there
  /// are several processes.
  using FromFirst = std::function<std::string(const std::string& mine)>;

  /// `boards`: one per worker of this process, the first of which is worker `first_worker` of all;
  /// they outlive the watchdog. Returns when all processes are connected: `communication` that
  /// names the absent ones after the timeout, `usage` for an interface that cannot be used.
  Watchdog(const World& world, int first_worker, std::vector<const ProgressBoard*> boards,
           WatchdogOptions options, const FromFirst& from_first = {});
  /// Says goodbye, and waits until all others have done so or the job has failed. Unwinding counts
  /// as a failure: the others hear that this process has left in the middle.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// This process cannot go on: all others stop with the first failure of the job, which is
  /// returned. on_failure is not called here any more, unless the first failure is another
  /// process's and on_failure is empty: then this one leaves without a word, as the others do.
  Error fail(const Error& error);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace convoy
