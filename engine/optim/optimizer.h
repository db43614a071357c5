// Optimizers over named parameters, which may live on several devices: one kernel call a device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/nn/module.h"
#include "kernels/base/stream.h"
#include "kernels/shapes.h"

namespace convoy {

/// State lies beside each parameter, on its device and in its layout, and is saved under its name.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Updates every parameter that has a gradient; gradients are multiplied by `gradient_scale`
  /// first.
  void step(double gradient_scale = 1);
  /// Drops the gradients.
  void zero_grad();
  void set_lr(double lr) { lr_ = lr; }
  double lr() const { return lr_; }
  /// Steps made so far.
  std::int64_t steps() const { return steps_; }

  /// Tensors of state that each parameter has once it has been updated.
  std::size_t states_per_parameter() const { return state_names_.size(); }

  virtual const char* name() const = 0;
  /// "momentum_buffer/conv1.weight", ...; only what exists so far.
  NamedTensors state_dict() const;
  /// Takes over saved state and the number of steps behind it. `checkpoint` that names an entry
  /// which fits no parameter, or a parameter with a gradient whose entry is missing.
  void load_state_dict(const NamedTensors& state, std::int64_t steps);
  const NamedTensors& parameters() const { return parameters_; }

 protected:
  Optimizer(NamedTensors parameters, double lr, std::vector<std::string> state_names);

  /// One device's parameters.
  virtual void update(Stream& stream, const std::vector<OptimizerSlot>& slots,
                      double gradient_scale) = 0;
  /// Whether a parameter's first update writes its state without reading it.
  virtual bool first_update_makes_state() const { return false; }
  /// Fills in what differs per parameter.
  virtual void configure(const Tensor& /*parameter*/, OptimizerSlot& /*slot*/) const {}

 private:
  OptimizerSlot slot_of(std::size_t parameter);
  /// The state tensor, made on first use and moved when its parameter has moved.
  Tensor& state_of(std::size_t parameter, std::size_t kind);

  NamedTensors parameters_;
  double lr_;
  std::int64_t steps_ = 0;
  std::vector<std::string> state_names_;
  std::vector<std::vector<Tensor>> states_;  // [kind][parameter]
};

struct SgdOptions {
  double lr = 0.1, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};

/// torch.optim.SGD.
class Sgd : public Optimizer {
 public:
  Sgd(NamedTensors parameters, const SgdOptions& options);
  const char* name() const override { return "sgd"; }

 protected:
  bool first_update_makes_state() const override { return true; }
  void update(Stream& stream, const std::vector<OptimizerSlot>& slots, double scale) override;
  void configure(const Tensor& parameter, OptimizerSlot& slot) const override;

 private:
  SgdOptions options_;
};

struct LarsOptions {
  double lr = 1, momentum = 0.9, weight_decay = 1e-4, trust = 0.001;
  bool nesterov = false;
};

/// LARS; parameters of one dimension (biases, batch norm) get neither decay nor a trust ratio.
class Lars : public Optimizer {
 public:
  Lars(NamedTensors parameters, const LarsOptions& options);
  const char* name() const override { return "lars"; }

 protected:
  void update(Stream& stream, const std::vector<OptimizerSlot>& slots, double scale) override;
  void configure(const Tensor& parameter, OptimizerSlot& slot) const override;

 private:
  LarsOptions options_;
};

struct AdamwOptions {
  double lr = 0.001, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
};

/// torch.optim.AdamW.
class Adamw : public Optimizer {
 public:
  Adamw(NamedTensors parameters, const AdamwOptions& options);
  const char* name() const override { return "adamw"; }

 protected:
  void update(Stream& stream, const std::vector<OptimizerSlot>& slots, double scale) override;
  void configure(const Tensor& parameter, OptimizerSlot& slot) const override;

 private:
  AdamwOptions options_;
};

/// Sum of squares of each tensor's values, in float64, in their order; waits for the devices.
std::vector<double> squared_norms(const std::vector<Tensor>& tensors);

}  // namespace convoy
