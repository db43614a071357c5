// The step on one worker that shares nothing: micro-batches one after the other, gradients added in
// their order. What every other layout is compared with.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/nn/network.h"
#include "engine/optim/optimizer.h"
#include "engine/train/loss_head.h"
#include "engine/train/step_runner.h"

namespace convoy {

class LocalRunner : public StepRunner {
 public:
  /// `network` and `optimizer` are on `options.device`, in `options.dtype`.
  LocalRunner(std::shared_ptr<Network> network, std::unique_ptr<Optimizer> optimizer,
              const RunnerOptions& options);

  StepResult step(const Window& window, BatchFeed& feed) override;
  EvalSums evaluate(const HostBatch& batch) override;
  Outputs predict(const HostBatch& batch) override;
  std::vector<std::string> weights_hashes() override;
  TrainingTensors tensors() override;
  std::vector<NamedArray> gradients() override;
  std::uint64_t tensor_bytes() const override;
  void load(const TrainingTensors& tensors) override;

 protected:
  /// Without gradients, ready for the window's first batch.
  void begin(const Window& window);
  /// Forward and backward of one micro-batch of the window. Returns its loss.
  Tensor add_micro_batch(const Tensor& x, const Tensor& target);
  /// The end of a step whose micro-batches gave these losses from these inputs, in order: reads
  /// the losses, then updates.
  StepResult finish(const std::vector<Tensor>& losses, const std::vector<Tensor>& inputs);
  std::vector<BatchRange> micro_batches_of(std::int64_t images) const;

  Network& network() { return *network_; }
  const LossHead& head() const { return head_; }

 private:
  void add_batch(const HostBatch& batch);
  void settle_losses(std::size_t but);
  double update();
  double checked_norm();
  Tensor infer(const Tensor& x);
  void infer_each(
      const HostBatch& batch,
      const std::function<void(const BatchRange&, const Tensor& x, const Tensor& output)>& see);
  [[noreturn]] void fail_loss(const std::string& when, double loss, const Tensor& x);

  std::shared_ptr<Network> network_;
  std::unique_ptr<Optimizer> optimizer_;
  RunnerOptions options_;
  LossHead head_;
  Window window_;
  double loss_ = 0;  // of the micro-batches whose loss was read
  struct Open {
    Tensor loss;
    Tensor x;  // kept to find the first bad layer
  };
  std::deque<Open> open_;  // micro-batches whose loss was not read yet
};

}  // namespace convoy
