// What lies around a network in a step: images in, the loss behind its output, and what is said of
// values that are not finite. The plain loop and the stages of a pipeline share it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/nn/module.h"
#include "engine/train/batch_plan.h"
#include "engine/train/step_runner.h"

namespace convoy {

enum class LossKind { cross_entropy, mse };

/// How a worker trains.
struct RunnerOptions {
  Device device;
  DType dtype = DType::f32;
  LossKind loss = LossKind::cross_entropy;
  double label_smoothing = 0;
  double clip_grad = 0;  ///< largest gradient norm; 0: no clipping
  MicroBatchRule micro_batches;
  bool recompute = false;         ///< forward runs once more in backward: only its input is kept
  std::size_t device_memory = 0;  ///< most bytes of the device to be used; 0: no cap
};

/// Images `begin` to `end - 1` of a batch.
struct BatchRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

class LossHead {
 public:
  explicit LossHead(const RunnerOptions& options) : options_(options) {}

  /// The network's input.
  Tensor input(const HostBatch& batch, const BatchRange& range) const;
  /// What its output is compared with: labels (i64), or rows of numbers.
  Tensor target(const HostBatch& batch, const BatchRange& range) const;
  /// Sum of the images' losses, times `scale`.
  Tensor training_loss(const Tensor& output, const Tensor& target, double scale) const {
    return loss(output, target, scale, options_.label_smoothing);
  }
  /// Adds loss, right answers and images to `sums` and returns the loss: label smoothing is
  /// training's alone.
  double add_to(EvalSums& sums, const HostBatch& batch, const BatchRange& range,
                const Tensor& output) const;

 private:
  Tensor loss(const Tensor& output, const Tensor& target, double scale, double smoothing) const;

  RunnerOptions options_;
};

/// Adds the rows of `logits` (rows x classes) whose label is among the best one and five; of equal
/// logits the first class is the better one, and one that is not a number is never among them.
void count_top(const std::vector<double>& logits, std::int64_t classes, const std::int64_t* labels,
               EvalSums& sums);

/// What went wrong first where a loss is not finite.
struct BadValue {
  std::string layer;  ///< empty: every layer's output is finite
  double value = 0;
};

/// "step 3: the loss is nan; the first value that is not finite is inf in conv1".
std::string bad_loss_text(const std::string& when, double loss, const BadValue& bad);
/// "step 3: the gradient of fc.weight holds nan". `square`: the sum of its squares.
std::string bad_gradient_text(std::int64_t step, const std::string& name, const Tensor& gradient,
                              double square);

/// Sum of the squares of each parameter's gradient, in the order of `layouts` (one for each
/// parameter), in that of the gradient where left out; 0 for a parameter without one.
std::vector<double> squares_of_gradients(const NamedTensors& parameters,
                                         const std::vector<LayoutId>& layouts = {});
/// What gradients of this norm are multiplied by before an update.
double clip_scale(double clip_grad, double norm);

}  // namespace convoy
