// What the training loop asks of the workers. The loop does not know how many there are: it hands
// over images and gets sums back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/loader.h"
#include "engine/io/named_array.h"
#include "engine/train/observer.h"

namespace convoy {

/// The batches behind one optimizer step. All processes know the same of it before it begins.
struct Window {
  std::int64_t step = 0;    ///< for messages
  std::int64_t images = 0;  ///< of all batches and replicas, those passed over left out
  double lr = 0;
  /// Images of each replica in each batch: [batch][replica].
  std::vector<std::vector<std::int64_t>> shares = {};
};

/// The images of a window for the workers of this process, loaded when they are first asked for.
/// Thread-safe.
class BatchFeed {
 public:
  virtual ~BatchFeed() = default;
  /// What this process's replicas have of batch `batch` of the window; stays until all workers are
  /// done with it.
  virtual const HostBatch& at(std::int64_t batch) = 0;
  /// A worker of this process needs the batch no more, nor those before it. Each worker says so
  /// once a batch.
  virtual void done(std::int64_t batch) = 0;
};

struct StepResult {
  double loss = 0;       ///< mean over the window's images
  double grad_norm = 0;  ///< before clipping
};

/// Sums over images; counts are integers, so that no image is lost in a large set.
struct EvalSums {
  double loss = 0;
  std::int64_t top1 = 0;
  std::int64_t top5 = 0;
  std::int64_t images = 0;

  EvalSums& operator+=(const EvalSums& other) {
    loss += other.loss;
    top1 += other.top1;
    top5 += other.top5;
    images += other.images;
    return *this;
  }
};

/// A network's outputs for the images of a batch, row by row.
struct Outputs {
  std::int64_t width = 0;
  std::vector<double> values;
};

/// Time spent adding gradients over replicas, since the runner was made.
struct ReduceSeconds {
  double all = 0;
  double exposed = 0;  ///< of it, while the device had nothing else to do
};

/// The whole state of training that is in tensors, whatever the layout.
struct TrainingTensors {
  std::vector<NamedArray> model;
  std::vector<NamedArray> optimizer;
  std::int64_t optimizer_steps = 0;  ///< fewer than the run's where all images were passed over
};

/// Where a run has several processes, each has its own runner, and all make the same calls; results
/// are those of all.
class StepRunner {
 public:
  virtual ~StepRunner() = default;

  /// Forward and backward of the window's batches in order, then one update. `numerics` if the
  /// loss or a gradient is not finite: nothing is updated then.
  virtual StepResult step(const Window& window, BatchFeed& feed) = 0;

  /// Sums over a batch with running statistics, without changing anything.
  virtual EvalSums evaluate(const HostBatch& batch) = 0;

  /// The outputs for a batch with running statistics, those of all replicas in order: complete in
  /// the process of rank 0, elsewhere none.
  virtual Outputs predict(const HostBatch& batch) = 0;

  /// Makes and proves the tables of windows of these shares before any runs: `usage` for a schedule
  /// that does not fit them. Stages' memory is measured: `resource` for a worker that would need
  /// more than its cap. Collective.
  virtual void prepare(const std::vector<std::vector<std::vector<std::int64_t>>>& /*windows*/) {}

  /// Gives all replicas the running statistics of replica 0, where each has its own: those are the
  /// network's. Before evaluations, checkpoints and hashes.
  virtual void settle_statistics() {}
  /// The weights hash of each replica of the job.
  virtual std::vector<std::string> weights_hashes() = 0;

  /// The links between stages, of all workers, as the test before the first step found them.
  /// Collective.
  virtual std::vector<LinkReport> links() { return {}; }

  /// Of this process's first replica.
  virtual ReduceSeconds reduce_seconds() const { return {}; }

  /// Collective: where the time of all workers went in the steps since the last call, and where the
  /// simulator says that it should. Of the process of rank 0, elsewhere without workers; also
  /// where there is one device and nothing to wait for.
  virtual WorkersEvent account() { return {}; }
  /// Whether the spans of the steps that follow are kept.
  virtual void keep_spans(bool /*on*/) {}
  /// Collective: the spans kept so far, of all workers; as account().
  virtual SpansEvent take_spans() { return {}; }

  /// Copies for a checkpoint, of replica 0: complete in the process of rank 0, elsewhere none.
  /// `numerics` if a weight is not finite.
  virtual TrainingTensors tensors() = 0;
  /// The gradients of the last step before clipping, in the order of parameters; as tensors().
  virtual std::vector<NamedArray> gradients() = 0;
  /// Bytes of the values that a checkpoint will hold, optimizer state included.
  virtual std::uint64_t tensor_bytes() const = 0;
  /// Takes over a checkpoint's tensors, in each replica of this process.
  virtual void load(const TrainingTensors& tensors) = 0;
};

}  // namespace convoy
