// One way to run a training step, on all workers or on one, timed step by step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/train/batch_feed.h"
#include "engine/train/ranks.h"
#include "engine/train/trainer.h"

namespace convoy {

/// Built and stepped by all processes of `ranks` together.
class TimedProgram {
 public:
  /// `job` runs on the batch of `feed`, divided over its replicas as `shares` say. A process that
  /// `takes_part` in nothing waits for the others.
  TimedProgram(const TrainingJob& job, const Ranks& ranks, std::shared_ptr<ReadyBatches> feed,
               std::vector<std::int64_t> shares, bool takes_part);

  /// Why it does not fit into memory, on the processes that take part; empty: it does.
  const std::string& failure() const { return failure_; }
  /// Seconds of a whole step, from the moment when all processes begin to when all are done.
  double step();
  /// Where the workers' time went in the steps since the last call; collective.
  WorkersEvent account() { return runner_ ? runner_->account() : WorkersEvent(); }

 private:
  Window window() const;
  void synchronize() const;
  void keep_failure(bool keeps, const std::function<void()>& work);

  const Ranks& ranks_;
  std::vector<Device> devices_;
  std::shared_ptr<ReadyBatches> feed_;
  std::vector<std::int64_t> shares_;
  std::unique_ptr<StepRunner> runner_;
  std::int64_t steps_ = 0;
  bool is_alone_ = false;
  std::string failure_;
};

}  // namespace convoy
