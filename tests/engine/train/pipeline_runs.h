// Runs of a few steps on one device and in a pipeline, and what they leave, for comparisons.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/train/pipeline_runner.h"

namespace convoy::testing {

/// What to train, and how.
struct PipelineCase {
  /// "small": a residual block and three more layers; "pixels": batch norm of the images as they
  /// are, in a second stage; or a model.
  std::string model = "small";
  std::int64_t image_size = 8;
  int replicas = 1;
  int workers = 1;  ///< of a replica
  int stages_per_worker = 1;
  std::vector<int> cuts = {};  ///< empty: about as many layers in each stage
  ScheduleOptions schedule = {};
  MicroBatchRule rule = {};
  std::string bn = "micro";
  bool recompute = false;
  double clip_grad = 0;
  std::string optimizer = "sgd";
  std::vector<std::int64_t> batches = {8};  ///< images of each batch of a window
  int steps = 3;
  std::string device = "cpu";
  bool one_device = false;  ///< of that kind, for all workers; else one each
  DType dtype = DType::f32;
  std::int64_t bad_step = 0;  ///< in which an image holds infinity
};

/// What a run has left.
struct RunResult {
  std::vector<double> losses, norms;
  std::vector<NamedArray> gradients;
  TrainingTensors tensors;
  std::vector<std::string> hashes;
  EvalSums sums;
  std::vector<double> outputs;
};

/// "1f1b, 2 workers x 1 stages, micro-batches of 3".
std::string describe(const PipelineCase& each);

std::shared_ptr<Network> network_of(const PipelineCase& each);

/// A batch of numbers `first` to `first + images - 1` of made-up images, shared by the replicas.
HostBatch made_up_batch(const PipelineCase& each, std::int64_t first, std::int64_t images);

/// On one device with the plain loop.
RunResult run_alone(const PipelineCase& each);
/// On a worker thread for each stage's worker.
RunResult run_pipeline(const PipelineCase& each);

/// A pipeline's runner with its group, for tests that drive it themselves.
struct RunningPipeline {
  explicit RunningPipeline(const PipelineCase& each);
  StepResult step(const PipelineCase& each, std::int64_t number);
  std::unique_ptr<Group> group;
  std::vector<std::shared_ptr<Network>> networks;
  std::unique_ptr<PipelineRunner> runner;
};

}  // namespace convoy::testing
