// bench step: whole training steps on made-up images that stay on the device: no loader, no files.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "comm/group.h"
#include "engine/train/settings.h"

namespace convoy {

struct StepBenchOptions {
  /// model, image_size (224), batch (of all replicas), devices, threads, precision, bn
  Settings settings;
  std::int64_t steps = 3;  ///< measured, after two for warming up
  Group* group = nullptr;  ///< all workers, each a replica; null: there is one
};

struct StepBenchResult {
  double images_per_s = 0;    ///< of the median step, of all replicas
  double best = 0;            ///< of the fastest step
  double share_of_peak = 0;   ///< convolutions' and products' FLOP/s over the measured FMA rate
  double peak_flops = 0;      ///< that rate, of all threads; 0 where it is not measured
  double peak_rss_mb = 0;     ///< of the process
  double device_peak_mb = 0;  ///< most that tensors held
  std::vector<double> seconds;
  std::int64_t replicas = 1;
  double images_per_s_per_replica = 0;
  /// Of a measured step, on this process's first replica: adding gradients over replicas, and the
  /// part of it that nothing hides.
  double all_reduce_seconds = 0;
  double exposed_seconds = 0;
  double overlap_share = 0;  ///< of the all-reduce time, hidden behind backward
  /// Of a step, on this process's first device: seconds of each class of op (bench/op_times.h), of
  /// `communication` that nothing hides, and of `host`, in which that device runs nothing. From
  /// steps of their own, after the measured ones.
  std::vector<std::pair<std::string, double>> op_seconds;
  /// In these last steps, the calls for device memory that had to ask the system: the first few
  /// steps still cut it to size. What the host takes by new and malloc is not counted.
  std::uint64_t allocations = 0;
  double host_stalls = 0;  ///< waits of 0.1 ms or more of the device within a step
};

/// All processes of a group make this call. Forward, loss, backward and SGD (lr 0.001, momentum
/// 0.9) on one batch, one micro-batch a replica.
///
/// `progress(i, n)` is called after each step.
StepBenchResult bench_step(const StepBenchOptions& options,
                           const std::function<void(std::int64_t, std::int64_t)>& progress);

}  // namespace convoy
