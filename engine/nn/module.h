// The base of layers and networks: named parameters, buffers and children, as PyTorch's nn::Module.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/tensor/random.h"
#include "engine/tensor/tensor.h"

namespace convoy {

/// Name and tensor, in the order of registration: own ones first, then those of the children.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// While it lives, modules that this thread makes keep zeros: for makers that initialize() anyway.
class NoInitializationScope {
 public:
  NoInitializationScope();
  ~NoInitializationScope();
  NoInitializationScope(const NoInitializationScope&) = delete;
  NoInitializationScope& operator=(const NoInitializationScope&) = delete;

 private:
  bool outer_;
};

/// While it lives, modules that this thread makes keep shapes alone: no memory, no values, until
/// materialize(). A network that no device could hold is built so, and each worker makes its part.
class NoValuesScope {
 public:
  NoValuesScope();
  ~NoValuesScope();
  NoValuesScope(const NoValuesScope&) = delete;
  NoValuesScope& operator=(const NoValuesScope&) = delete;

 private:
  bool outer_;
};

/// For constructors of modules: f32 values on cpu:0, all `value`; without values in a
/// NoValuesScope.
Tensor initial_values(const Shape& shape, double value = 0);

class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// The output for one input. A module with one input overrides this.
  virtual Tensor forward(const Tensor& x);
  /// The output for several inputs; a module that takes more than one overrides this.
  virtual Tensor forward_all(const std::vector<Tensor>& inputs);
  Tensor operator()(const Tensor& x) { return forward(x); }

  /// "layer1.0.conv1.weight" and its tensor; handles share the module's values.
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  std::vector<Tensor> parameters() const;
  /// "bn1.num_batches_tracked" and where it is; as long as the module lives.
  std::vector<std::pair<std::string, std::int64_t*>> named_counters() const;
  /// Parameters, buffers and counters under PyTorch's names. Counters are i64 scalars on the CPU.
  NamedTensors state_dict() const;
  /// Overwrites the values. `checkpoint` that names missing, unexpected and mis-shaped entries;
  /// with `strict` off only mis-shaped ones. Counters may be absent.
  void load_state_dict(const NamedTensors& state, bool strict = true);
  /// Number of values in all parameters.
  std::int64_t parameter_count() const;

  /// Training mode of this module and all below it.
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }
  void zero_grad();
  /// Moves parameters and buffers; handles of them stay valid.
  virtual void to(const Device& device);
  void to(DType dtype);
  /// Draws the initial values anew: each depends on the seed and the parameter's name alone.
  void initialize(std::uint64_t seed, const std::string& prefix = "");
  /// Gives the parameters and buffers below that have no values memory on `device` and the values
  /// that initialize() draws: those of a module drawn in f32 and moved afterwards, to the last bit.
  /// Zeros where reset() draws nothing. What has values already stays as it is.
  void materialize(const Device& device, DType dtype = DType::f32, std::uint64_t seed = 0,
                   const std::string& prefix = "");
  /// False if a parameter or buffer here or below was made in a NoValuesScope and not materialized.
  bool is_materialized() const;
  /// Calls `visit` for this module (name "") and all below it.
  void for_each(const std::function<void(const std::string& name, Module&)>& visit);

  /// Shape of the output for inputs of these shapes, without running anything.
  virtual Shape output_shape(const std::vector<Shape>& inputs) const { return inputs.at(0); }
  /// Multiply-adds of convolutions and matrix products for inputs of these shapes.
  virtual std::int64_t multiply_adds(const std::vector<Shape>& /*inputs*/) const { return 0; }
  /// A short text for tables: "Conv2d(64, 64, 3x3, stride 1)".
  virtual std::string describe() const { return "Module"; }
  const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& children() const {
    return children_;
  }

 protected:
  /// Parameters require a gradient. In a NoValuesScope the values are dropped here. Names are
  /// unique in a module and hold no dot at the ends. A child without a name lends its module its
  /// own names, unchanged.
  Tensor register_parameter(const std::string& name, Tensor value);
  Tensor register_buffer(const std::string& name, Tensor value);
  void register_counter(const std::string& name, std::int64_t* value);
  template <class M>
  std::shared_ptr<M> register_module(const std::string& name, std::shared_ptr<M> module) {
    add_child(name, module);
    return module;
  }
  /// Overwrites own parameters and buffers with initial values; `stream(name)` gives the numbers.
  virtual void reset(const std::function<RandomStream(const std::string& name)>& /*stream*/) {}
  /// For constructors: reset() from the generator that manual_seed sets.
  void reset_with_manual_seed();

 private:
  void materialize_own(const Device& device, DType dtype, std::uint64_t seed,
                       const std::string& prefix);
  void add_child(const std::string& name, std::shared_ptr<Module> module);
  void collect(const std::string& prefix, NamedTensors Module::*own, NamedTensors& out) const;
  void collect_state(const std::string& prefix, NamedTensors& out) const;
  void collect_counters(const std::string& prefix,
                        std::vector<std::pair<std::string, std::int64_t*>>& out) const;

  NamedTensors parameters_;
  NamedTensors buffers_;
  std::vector<std::pair<std::string, std::int64_t*>> counters_;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children_;
  bool training_ = true;
};

}  // namespace convoy
