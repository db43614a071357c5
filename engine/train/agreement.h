// What the workers of a job tell each other at the end of a window or an evaluation: losses, the
// squares behind the gradient norm, and what is not finite. All add the same numbers in the same
// order, and all throw the same error.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/host_communicator.h"
#include "engine/train/layout.h"
#include "engine/train/loss_head.h"
#include "engine/train/stage_map.h"
#include "engine/train/step_runner.h"

namespace convoy {

/// What a worker has met while it ran micro-batches.
struct Findings {
  EvalSums sums;                                     ///< where it has the last stage
  int bad_micro_batch = -1;                          ///< the first one whose loss is not finite
  double bad_loss = 0;                               ///< that loss
  std::vector<std::pair<int, BadValue>> bad_values;  ///< by micro-batch, of its own layers

  void note_loss(int micro_batch, double loss);
  void note_bad_value(int micro_batch, const std::pair<std::string, double>& layer_and_value);
};

/// Gradients of one stage for the norm.
struct StageGradients {
  int stage = 0;
  NamedTensors parameters;
  std::vector<double> squares;  ///< one for each parameter
};

class Agreement {
 public:
  /// Collective: `group` has all workers and outlives this, as `map` does.
  Agreement(HostCommunicator& group, const Layout& layout, const StageMap& map);

  /// Collective: the window's loss and gradient norm, the same on all. `numerics` on all if a loss
  /// or a gradient is not finite anywhere: it names layer or parameter, and the rank that holds it.
  StepResult step(std::int64_t step, const Findings& mine,
                  const std::vector<StageGradients>& gradients);
  /// Collective: sums over all workers. `numerics` as above.
  EvalSums evaluation(const Findings& mine);

 private:
  struct Record;
  struct Gathered;
  Gathered gather(const Findings& mine, const std::vector<double>& squares);
  void check_losses(const std::string& when, const std::vector<Record>& all, const Findings& mine);
  double norm_of(std::int64_t step, const std::vector<StageGradients>& mine, const Gathered& all);
  std::span<const double> squares_of(int stage, const Gathered& all) const;
  [[noreturn]] void fail_gradient(std::int64_t step, const std::vector<StageGradients>& mine,
                                  int stage, std::size_t parameter);

  std::unique_ptr<HostCommunicator> group_;
  const Layout layout_;
  const StageMap& map_;
  std::size_t widest_ = 0;  // parameters of the worker that has most
};

}  // namespace convoy
