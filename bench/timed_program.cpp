#include "bench/timed_program.h"

#include <chrono>
#include <numeric>
#include <utility>

#include "kernels/base/context.h"
#include "kernels/base/error.h"

namespace convoy {

TimedProgram::TimedProgram(const TrainingJob& job, const Ranks& ranks,
                           std::shared_ptr<ReadyBatches> feed, std::vector<std::int64_t> shares,
                           bool takes_part)
    : ranks_(ranks), feed_(std::move(feed)), shares_(std::move(shares)) {
  if (!takes_part) return;
  for (const std::string& name : job.settings.devices) devices_.emplace_back(name);
  is_alone_ = !job.group;
  keep_failure(true, [&] {
    runner_ = make_runner(job);
    runner_->prepare({window().shares});
  });
}

// A group that has failed in a step is gone: that cannot be kept.
void TimedProgram::keep_failure(bool keeps, const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    if (!keeps || error.kind() != ErrorKind::resource) throw;
    failure_ = error.text();
  }
}

double TimedProgram::step() {
  using Clock = std::chrono::steady_clock;
  ++steps_;
  ranks_.begin_step(steps_);
  ranks_.barrier();
  const Clock::time_point start = Clock::now();
  if (runner_ && failure_.empty()) {
    keep_failure(is_alone_, [&] { runner_->step(window(), *feed_); });
  }
  synchronize();
  ranks_.barrier();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Window TimedProgram::window() const {
  const std::int64_t images = std::accumulate(shares_.begin(), shares_.end(), std::int64_t{0});
  return {.step = steps_, .images = images, .lr = 0.001, .shares = {shares_}};
}

void TimedProgram::synchronize() const {
  for (const Device& device : devices_) context(device).default_stream().synchronize();
}

}  // namespace convoy
