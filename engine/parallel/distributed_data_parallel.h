// Data parallelism over workers: each has a module and its share of every batch, and backward
// leaves all of them with the gradients of the whole batch.
//
//     init_process_group();
//     DistributedDataParallel model(std::make_shared<Linear>(10, 1));
//     ...
//     mse_loss(model(x), y).backward();       gradients are summed over workers meanwhile
//     optimizer.step();                       the same step on all of them
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "engine/nn/module.h"
#include "engine/parallel/bucket_plan.h"
#include "engine/parallel/reducer.h"

namespace convoy {

struct DistributedOptions {
  /// Devices of the module. Where named, inputs may come from any device and are moved to the
  /// first, and the output is returned on the first; `usage` for a parameter that is on none.
  std::vector<Device> device_ids;
  /// Before each forward in training all get rank 0's buffers (running statistics).
  bool broadcast_buffers = true;
  /// Parameters may be without a gradient: zeros stand for it, and where no rank has one there is
  /// none. Otherwise that is `usage` on all ranks, with names and ranks.
  bool find_unused_parameters = false;
  BucketLimits buckets = {};
};

/// A module around any other one, with the names of that one, without a prefix: state_dict() is
/// that of the module within, so files fit both. The module within may span several devices. Used
/// by the thread of its worker; all ranks make the same calls, with modules alike.
///
/// Each rank's loss is the mean over its own images. The gradient of rank r counts n_r / (sum of
/// n), n being the images (size(0) of the input) of its forwards since the last sum; so it is that
/// of one mean over all images, for uneven shares, and for some ranks with none (the mean over no
/// images is open: a rank without any gives its loss a scale).
class DistributedDataParallel : public Module {
 public:
  /// Collective: checks that modules are alike (`usage` that names the first difference) and gives
  /// all of them rank 0's parameters, buffers and counters. `communicator` must outlive the last
  /// call; left out, it is that of the process group that this worker has joined.
  DistributedDataParallel(std::shared_ptr<Module> module, Communicator& communicator,
                          DistributedOptions options = {});
  explicit DistributedDataParallel(std::shared_ptr<Module> module, DistributedOptions options = {});
  /// A forward whose backward has not run yet is of no use afterwards.
  ~DistributedDataParallel() override;

  Tensor forward(const Tensor& x) override { return forward_all({x}); }
  /// The first input's size(0) is the number of images.
  Tensor forward_all(const std::vector<Tensor>& inputs) override;

  /// While it lives, forwards are of a batch that is not the last one of its window: their backward
  /// only adds up gradients on this rank, and the next one that is not sends them all.
  class NoSyncScope;
  [[nodiscard]] NoSyncScope no_sync();
  /// Collective: all ranks get rank 0's buffers and counters, as is due before they share out an
  /// evaluation.
  void broadcast_buffers();

  const std::shared_ptr<Module>& module() const { return module_; }
  /// Time in all-reduce on this rank so far, and how much of it backward did not hide.
  ReduceTimes reduce_times() const;

  Shape output_shape(const std::vector<Shape>& inputs) const override {
    return module_->output_shape(inputs);
  }
  std::int64_t multiply_adds(const std::vector<Shape>& inputs) const override {
    return module_->multiply_adds(inputs);
  }
  std::string describe() const override;

 private:
  class Window;
  void check_devices() const;
  std::vector<Tensor> on_first_device(const std::vector<Tensor>& inputs) const;

  std::shared_ptr<Module> module_;
  DistributedOptions options_;
  bool synchronizes_ = true;
  std::shared_ptr<Window> window_;  // nodes of graphs refer to it
};

class DistributedDataParallel::NoSyncScope {
 public:
  explicit NoSyncScope(DistributedDataParallel& model);
  ~NoSyncScope();
  NoSyncScope(const NoSyncScope&) = delete;
  NoSyncScope& operator=(const NoSyncScope&) = delete;

 private:
  DistributedDataParallel& model_;
  bool outer_;
};

}  // namespace convoy
