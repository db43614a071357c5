// The layers of networks, with PyTorch's names, defaults and initial values.
#pragma once

#include <string>

#include "engine/nn/module.h"
#include "engine/ops/ops.h"

namespace convoy {

/// How a convolution's initial weights are drawn.
enum class Conv2dInit {
  uniform_fan_in,  ///< PyTorch's default: uniform within 1 / sqrt(fan_in)
  normal_fan_out,  ///< torchvision's ResNets: normal with deviation sqrt(2 / fan_out)
};

class Conv2d : public Module {
 public:
  /// `kernel` is height and width.
  Conv2d(std::int64_t in, std::int64_t out, Pair kernel, const Conv2dOptions& options = {},
         bool with_bias = true, Conv2dInit init = Conv2dInit::uniform_fan_in);
  Tensor forward(const Tensor& x) override;
  Shape output_shape(const std::vector<Shape>& inputs) const override;
  std::int64_t multiply_adds(const std::vector<Shape>& inputs) const override;
  std::string describe() const override;

  Tensor weight, bias;
  const Conv2dOptions options;

 protected:
  void reset(const std::function<RandomStream(const std::string&)>& stream) override;

 private:
  Conv2dInit init_;
};

class Linear : public Module {
 public:
  Linear(std::int64_t in, std::int64_t out, bool with_bias = true);
  Tensor forward(const Tensor& x) override;
  Shape output_shape(const std::vector<Shape>& inputs) const override;
  std::int64_t multiply_adds(const std::vector<Shape>& inputs) const override;
  std::string describe() const override;

  Tensor weight, bias;

 protected:
  void reset(const std::function<RandomStream(const std::string&)>& stream) override;
};

/// Batch norm over (N, C, H, W) or (N, C), with the add and the ReLU that may follow it.
class BatchNorm2d : public Module {
 public:
  /// `relu`: ReLU comes last. `residual`: takes a second input, added before the ReLU.
  explicit BatchNorm2d(std::int64_t channels, bool relu = false, bool residual = false);
  Tensor forward(const Tensor& x) override;
  Tensor forward_all(const std::vector<Tensor>& inputs) override;
  std::string describe() const override;

  /// Mode `deferred`: one update of the running statistics for all forwards since the last commit.
  void commit();
  /// Forwards that run once more (recomputation, diagnosis) must not change running statistics.
  void set_update_running(bool on) { update_running_ = on; }
  bool updates_running() const { return update_running_; }
  void set_mode(BatchNormMode mode) { mode_ = mode; }
  BatchNormMode mode() const { return mode_; }
  /// Normalises over all ranks of `group` in training; null: over this call's values alone. The
  /// group is this use's own (see BatchNormOptions) and outlives it.
  void set_group(Communicator* group) { group_ = group; }
  Communicator* group() const { return group_; }

  Tensor weight, bias, running_mean, running_var;
  std::int64_t num_batches_tracked = 0;
  const double momentum = 0.1;
  const double epsilon = 1e-5;

 protected:
  void reset(const std::function<RandomStream(const std::string&)>& stream) override;

 private:
  Tensor normalise(const Tensor& x, const Tensor& residual);

  const bool relu_;
  const bool residual_;
  BatchNormMode mode_ = BatchNormMode::micro;
  bool update_running_ = true;
  BatchNormPending pending_;
  Communicator* group_ = nullptr;
};

class Relu : public Module {
 public:
  Tensor forward(const Tensor& x) override { return relu(x); }
  std::string describe() const override { return "ReLU"; }
};

class MaxPool2d : public Module {
 public:
  explicit MaxPool2d(const Pool2dOptions& options) : options_(options) {}
  Tensor forward(const Tensor& x) override { return max_pool2d(x, options_); }
  Shape output_shape(const std::vector<Shape>& inputs) const override;
  std::string describe() const override;

 private:
  Pool2dOptions options_;
};

/// Mean over height and width, then (N, C).
class GlobalAvgPool2d : public Module {
 public:
  Tensor forward(const Tensor& x) override { return global_avg_pool2d(x).flatten(); }
  Shape output_shape(const std::vector<Shape>& inputs) const override {
    return {inputs.at(0)[0], inputs.at(0)[1]};
  }
  std::string describe() const override { return "GlobalAvgPool2d"; }
};

/// Children one after the other, named "0", "1", ... or as given.
class Sequential : public Module {
 public:
  Sequential() = default;
  explicit Sequential(std::vector<std::shared_ptr<Module>> modules);
  Sequential& add(const std::string& name, std::shared_ptr<Module> module);
  Tensor forward(const Tensor& x) override;
  Shape output_shape(const std::vector<Shape>& inputs) const override;
  std::int64_t multiply_adds(const std::vector<Shape>& inputs) const override;
  std::string describe() const override { return "Sequential"; }
};

/// Sets the mode of every batch norm below `module`.
void set_batch_norm_mode(Module& module, BatchNormMode mode);
/// Sets the group of every batch norm below `module`: `sync`, and `deferred+sync` with that mode.
void set_batch_norm_group(Module& module, Communicator* group);
/// Commits every batch norm below `module` (mode `deferred`).
void commit_batch_norms(Module& module);

}  // namespace convoy
