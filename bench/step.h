// bench step: whole training steps on made-up images that stay on the device: no loader, no files.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/train/settings.h"

namespace convoy {

struct StepBenchOptions {
  Settings settings;       ///< model, image_size (224), batch, devices, threads, precision, bn
  std::int64_t steps = 3;  ///< measured, after one for warming up
};

struct StepBenchResult {
  double images_per_s = 0;    ///< of the median step
  double best = 0;            ///< of the fastest step
  double share_of_peak = 0;   ///< convolutions' and products' FLOP/s over the measured FMA rate
  double peak_flops = 0;      ///< that rate, of all threads; 0 where it is not measured
  double peak_rss_mb = 0;     ///< of the process
  double device_peak_mb = 0;  ///< most that tensors held
  std::vector<double> seconds;
};

/// Forward, loss, backward and SGD (lr 0.001, momentum 0.9) on one batch as one micro-batch.
/// `progress(i, n)` is called after each step.
StepBenchResult bench_step(const StepBenchOptions& options,
                           const std::function<void(std::int64_t, std::int64_t)>& progress);

}  // namespace convoy
