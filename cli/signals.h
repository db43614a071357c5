// What signals mean. In training SIGTERM and SIGUSR1 (which launchers pass on) ask it to stop, save
// and leave with 143. Elsewhere SIGTERM leaves at once with 143. Ctrl-C (SIGINT) always leaves at
// once with 130 and saves nothing; files are written under temporary names, so none is left broken.
#pragma once

#include <atomic>

#include "engine/train/stop_request.h"

namespace convoy::cli {

constexpr int kExitInterrupt = 130;
constexpr int kExitTerminated = 143;

/// Handlers for a program that has nothing to save. A file-size limit and a reader that has gone
/// become errors of write().
void install_signals();

/// While it lives, SIGTERM and SIGUSR1 set `request()`.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  const StopRequest& request() const { return request_; }
  /// Called by the handler, or with 0 for other reasons.
  void stop(int signal);
  /// The signal that has come: "SIGTERM"; empty if none has.
  const char* signal_name() const;

 private:
  std::atomic<int> signal_{0};
  StopRequest request_;
};

}  // namespace convoy::cli
