// Where a step's time goes: what a stream runs, added up by the class of the op.
//
//     conv2d_forward 1.2 ms | batch_norm_apply 0.3 ms | (gap) | fill 0.1 ms     a stream's spans
//     conv2d_forward 1.2 ms, batch_norm 0.3 ms, elementwise 0.1 ms, host 0.2 ms
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/stream_recorder.h"

namespace convoy {

/// The class of a kernel or copy by its name (see kernel_name()): "conv2d_forward",
/// "batch_norm", "pooling", ...; "other" for a name that no class knows.
std::string op_class(const std::string& kernel);

/// Adds up what one stream runs. Thread-safe.
class OpTimes : public StreamRecorder {
 public:
  /// A shorter gap between two spans is no stall.
  static constexpr std::chrono::microseconds kStall{100};

  void ran(const StreamSpan& span) override;
  /// What comes next follows nothing: the gap before it counts as no stall.
  void begin_step();

  /// Seconds of each class since the start, in a fixed order, classes without any left out.
  std::vector<std::pair<std::string, double>> seconds() const;
  /// Gaps of kStall or more within a step, in which the stream waited for the host or for others.
  std::int64_t stalls() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, double> by_kernel_;  // by signature
  std::chrono::steady_clock::time_point end_;
  bool first_ = true;
  std::int64_t stalls_ = 0;
};

}  // namespace convoy
