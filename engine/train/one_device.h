// What a layout of replicas and stages must equal: one device that walks the same plan, replica by
// replica and micro-batch by micro-batch, each with a plain forward and backward of the whole
// network. It shares no code with the runners.
//
//     replica 0: micro-batches 0 1 2 -> gradients g0 -+
//     replica 1: micro-batches 0 1 2 -> gradients g1 -+-> (g0 + g1) + g2 -> norm -> one update
//     replica 2: micro-batches 0 1   -> gradients g2 -+
//
// Where batch norm joins micro-batch k of all replicas (`sync`), they walk side by side, a thread
// and a stream of that device each.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/optim/optimizer.h"
#include "engine/train/batch_plan.h"
#include "engine/train/layer_watch.h"
#include "engine/train/step_runner.h"
#include "engine/train/trainer.h"

namespace convoy {

class OneDevice {
 public:
  /// The networks are job.make_network()'s, one a replica, with `weights` (of one of them) where
  /// given; the settings are resolved. `alive` is called now and then by the calling thread.
  OneDevice(const TrainingJob& job, int replicas, const Device& device, const NamedTensors& weights,
            std::function<void()> alive);
  ~OneDevice();

  /// `batches`: each with the images of all replicas, of which those of window.shares are used.
  StepResult step(const Window& window, const std::vector<HostBatch>& batches);

  /// Sums over replicas, of the last step; undefined where no replica has one.
  NamedTensors gradients() const;
  NamedTensors weights() const;
  /// Running values and counters of a replica.
  NamedTensors statistics(int replica) const;
  /// Outputs of the last step's layers for a replica's micro-batches, in their order.
  LayerWatch::Outputs take_outputs(int replica);

 private:
  struct Replica;
  void walk(Replica& replica, const Window& window, const std::vector<HostBatch>& batches);
  void walk_batch(Replica& replica, const HostBatch& batch, const std::vector<std::int64_t>& shares,
                  double scale);
  void walk_together(const Window& window, const std::vector<HostBatch>& batches);
  Tensor loss_of(const HostBatch& batch, std::int64_t begin, std::int64_t images,
                 const Tensor& output, double scale) const;
  void add_gradients();
  double norm() const;
  void copy_weights();

  const Settings settings_;
  const Division division_;
  const Device device_;
  const DType dtype_;
  const std::function<void()> alive_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::unique_ptr<Optimizer> optimizer_;  // of replica 0, whose weights all get
};

}  // namespace convoy
