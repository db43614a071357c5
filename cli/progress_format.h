// Texts of the progress display, free of terminals and clocks.
#pragma once

#include <cstdint>
#include <string>

#include "engine/train/observer.h"

namespace convoy::cli {

/// 25557032 as "25,557,032".
std::string grouped(std::int64_t number);
/// "9 s", "4 min 05 s", "3 h 07 min", "2 d 04 h".
std::string duration(double seconds);
/// "1234", "35.2", "0.413": about three digits.
std::string rate(double per_second);
/// 0.8125 as "81.25 %".
std::string percent(double fraction);

/// Sums over the steps of a run. The first step (warm-up: first allocations, oneDNN's primitives)
/// counts in no rate.
class Pace {
 public:
  void add(const StepEvent& event);

  double rate() const { return seconds_ > 0 ? images_ / seconds_ : 0; }
  /// Of the last ten steps or so: older ones fade.
  double recent_rate() const { return recent_seconds_ > 0 ? recent_images_ / recent_seconds_ : 0; }
  /// Share of the time spent waiting for data.
  double wait_share() const { return seconds_ > 0 ? wait_ / seconds_ : 0; }
  /// Seconds for `steps` more steps, 0 if not known yet.
  double seconds_for(std::int64_t steps) const;
  /// Training time, the first step included.
  double elapsed() const { return elapsed_; }

 private:
  std::int64_t steps_ = 0;  // those measured
  bool warm_ = false;
  double images_ = 0;
  double seconds_ = 0;
  double wait_ = 0;
  double recent_images_ = 0;
  double recent_seconds_ = 0;
  double elapsed_ = 0;
};

/// Where a run stands.
struct Standing {
  std::int64_t step = 0;  ///< of the epoch, from 1
  std::int64_t steps_per_epoch = 0;
  std::int64_t epoch = 0;
  std::int64_t epochs = 0;
  std::int64_t steps_left = 0;  ///< of the run
  double loss = 0;              ///< mean since the epoch began, or since the run went on
  double lr = 0;
};

/// "epoch 1/3  120/375  32 %  loss 0.8123  35.2 images/s (34.8)  lr 0.001  data wait 1 %  6 min
/// left"; the rate in brackets is the mean of the run.
std::string standing_line(const Standing& standing, const Pace& pace);

/// `line` behind a bar as wide as `columns` allow; without one, or cut, where they do not.
std::string bar_line(const Standing& standing, const std::string& line, int columns);

/// "resnet50, 25,557,032 parameters, batch norm micro, cpu:0 (AVX-512), 60,000 images".
std::string run_text(const RunInfo& info, const std::string& data);

}  // namespace convoy::cli
