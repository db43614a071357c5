// Is a layout of replicas and stages equal to one device? Both walk the same steps on the same
// images; after each, all that can differ is compared in every bit.
//
//     all processes: the layout's step, hashes of what each worker has  -> the leader
//     the leader:    one_device.h's step, the same hashes; values follow where they differ
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/train/compared_state.h"
#include "engine/train/step_runner.h"
#include "engine/train/trainer.h"

namespace convoy {

/// The largest absolute difference of a kind over all steps; infinite where something is missing
/// on one side, only one of them is a number, or one is known by its hash alone.
struct LargestDifference {
  double value = 0;
  std::string name;  ///< of the tensor; empty where all are equal
};

/// Where a layout first departs from one device. In forward: the first layer in network order. In
/// backward: the parameter nearest to the loss.
struct FirstDifference {
  std::int64_t step = 0;
  std::string phase;   ///< "forward", "loss", "backward", "norm", "statistics", "update"
  std::string layer;   ///< its name; "loss"
  std::string tensor;  ///< the tensor's name; empty for outputs and the loss
  int replica = 0;
  std::optional<std::int64_t> micro_batch;  ///< of the replica's in the step; for outputs
};

struct VerifyResult {
  bool equal = true;  ///< in every bit; the same on all processes
  std::int64_t steps = 0;
  std::int64_t compared = 0;  ///< outputs and tensors
  double loss = 0;            ///< of the last step, of the layout
  double grad_norm = 0;
  LargestDifference loss_difference, norm_difference, gradient, statistic, weight;
  std::optional<FirstDifference> first;
};

/// What one device has come to: hashes alone, for layouts that follow with the same settings but
/// for stages, cuts, schedule and devices. Where they differ then, how much stays unknown.
struct KnownSteps {
  struct Step {
    StepResult result;
    std::vector<StateEntry> entries;
  };
  std::vector<Step> steps;
};

struct VerifyOptions {
  std::int64_t steps = 3;
  /// Makes the layout's runner.
  std::function<std::unique_ptr<StepRunner>(const TrainingJob&)> make = make_runner;
  /// Where given: the leading process takes the one device's steps from it, or, while it is empty,
  /// puts them there.
  KnownSteps* known = nullptr;
};

/// Steps of training as `job` says, and of one device. Collective; what was found is told by the
/// leading process alone.
VerifyResult verify(const TrainingJob& job, const VerifyOptions& options);

}  // namespace convoy
