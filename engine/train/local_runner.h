// The step on one worker: micro-batches one after the other, gradients added in their order.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "engine/nn/network.h"
#include "engine/optim/optimizer.h"
#include "engine/train/batch_plan.h"
#include "engine/train/step_runner.h"

namespace convoy {

enum class LossKind { cross_entropy, mse };

struct LocalRunnerOptions {
  Device device;
  DType dtype = DType::f32;
  LossKind loss = LossKind::cross_entropy;
  double label_smoothing = 0;
  double clip_grad = 0;  ///< largest gradient norm; 0: no clipping
  MicroBatchRule micro_batches;
};

/// The images of a batch that one replica works on, and in how many micro-batches; those beyond
/// its images are empty.
struct BatchPart {
  std::int64_t begin = 0;
  std::int64_t images = 0;
  std::int64_t passes = 0;
};

class LocalRunner : public StepRunner {
 public:
  /// `network` and `optimizer` are on `options.device`, in `options.dtype`.
  LocalRunner(std::shared_ptr<Network> network, std::unique_ptr<Optimizer> optimizer,
              const LocalRunnerOptions& options);

  StepResult step(const Window& window, BatchFeed& feed) override;
  EvalSums evaluate(const HostBatch& batch) override;
  std::vector<std::string> weights_hashes() override;
  TrainingTensors tensors() override;
  std::uint64_t tensor_bytes() const override;
  void load(const TrainingTensors& tensors) override;

  // The same for one of several replicas, which share a batch.

  /// Begins a window: gradients are dropped.
  void begin(const Window& window);
  /// Forward and backward of one part; `before_last` is called before its last backward.
  void add_part(const HostBatch& batch, const BatchPart& part,
                const std::function<void()>& before_last = {});
  /// Sum of the losses of this replica's images, each over the window's images. Waits for the
  /// device.
  double finish_losses();
  /// Updates the weights; the gradients are those of all replicas by now. Returns their norm, added
  /// up in the order of `layouts`, one for each parameter; in that of the gradients where left out.
  double update(const std::vector<LayoutId>& layouts = {});
  /// Gives the weights the layouts that they take for one of `batch`'s images: replicas without
  /// images would keep others.
  void settle_layouts(const HostBatch& batch);
  EvalSums evaluate_part(const HostBatch& batch, const BatchPart& part);

 private:
  Tensor input(const HostBatch& batch, std::int64_t begin, std::int64_t end) const;
  Tensor loss_of(const HostBatch& batch, std::int64_t begin, std::int64_t end, const Tensor& output,
                 double scale, double smoothing) const;
  void settle_losses(std::size_t but);
  double checked_norm(const std::vector<LayoutId>& layouts);
  std::vector<NamedArray> finite_model();
  [[noreturn]] void fail_loss(const std::string& when, double loss, const Tensor& x);

  std::shared_ptr<Network> network_;
  std::unique_ptr<Optimizer> optimizer_;
  LocalRunnerOptions options_;
  Window window_;
  double loss_ = 0;  // of the micro-batches whose loss was read
  struct Open {
    Tensor loss;
    Tensor x;  // kept to find the first bad layer
  };
  std::deque<Open> open_;  // micro-batches whose loss was not read yet
};

/// Adds the rows of `logits` (rows x classes) whose label is among the best one and five; of equal
/// logits the first class is the better one, and one that is not a number is never among them.
void count_top(const std::vector<double>& logits, std::int64_t classes, const std::int64_t* labels,
               EvalSums& sums);

}  // namespace convoy
