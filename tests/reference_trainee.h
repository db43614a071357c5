// A model of a training case on its way, however it runs: what is compared with the case's values.
#pragma once

#include <memory>
#include <vector>

#include "engine/nn/network.h"
#include "engine/optim/optimizer.h"
#include "tests/reference_case.h"

namespace convoy::testing {

/// What a training case says.
struct TrainingPlan {
  Shape shape;  ///< of the batch: images named "input", labels named "label"
  std::int64_t classes = 1;
  std::int64_t micro_batch = 1;
  double label_smoothing = 0;
  SgdOptions sgd;
};

class Trainee {
 public:
  virtual ~Trainee() = default;
  /// One optimizer step; appends the logits of its images in their order. Returns the mean loss.
  virtual double step(std::vector<double>& logits) = 0;
  /// Of the last step.
  virtual NamedTensors gradients() = 0;
  virtual NamedTensors running() = 0;
  virtual NamedTensors parameters() = 0;
  /// Logits of the batch's images with running statistics.
  virtual std::vector<double> evaluate() = 0;
};

/// Reads a training case strictly.
TrainingPlan training_plan(const Json& given);
/// The case's model with parameters by formula.
std::shared_ptr<Network> formula_model(const Json& given, const TensorOptions& options);
/// Trains and compares all that the case gives; a wrong value fails the running test.
void check_training(const Json& given, Trainee& trainee, DType dtype);

}  // namespace convoy::testing
