// What a stream tells of the work that it runs: for traces.
#pragma once

#include <chrono>

#include "kernels/base/device.h"

namespace convoy {

/// One kernel or copy that a stream has run.
struct StreamSpan {
  Device device;
  /// "conv2d_forward", or the signature of the function that queued it, see kernel_name().
  const char* kernel;
  std::chrono::steady_clock::time_point begin, end;
};

/// Told of a stream's work, by the thread that runs it; of several streams at the same time.
class StreamRecorder {
 public:
  virtual ~StreamRecorder() = default;
  virtual void ran(const StreamSpan& span) = 0;
};

}  // namespace convoy
