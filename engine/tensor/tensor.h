// The tensor: a cheap handle to shared memory, with what autograd knows of it. Names follow
// PyTorch's C++ interface. Values lie row-major, or in a layout private to the device's backend
// that only buffer() shows: everything that reads values puts them in row-major order first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/buffer.h"
#include "kernels/base/device.h"
#include "kernels/base/shape.h"

namespace convoy {

class Node;
class Storage;

/// Element type and device of a tensor to be made.
struct TensorOptions {
  DType dtype = DType::f32;
  Device device = {};
};

/// Copies of a Tensor refer to the same values and the same gradient. Not thread-safe.
class Tensor {
 public:
  /// An undefined tensor.
  Tensor() = default;

  /// Not initialised.
  static Tensor empty(const Shape& shape, TensorOptions options = {}, LayoutId layout = kPlain);
  /// Same shape, element type, device and layout; not initialised.
  static Tensor empty_like(const Tensor& other);
  static Tensor zeros(const Shape& shape, TensorOptions options = {});
  static Tensor zeros_like(const Tensor& other);
  static Tensor ones(const Shape& shape, TensorOptions options = {});
  /// The values that lie at the start of `storage`.
  static Tensor over(std::shared_ptr<Storage> storage, const Shape& shape, DType dtype,
                     LayoutId layout = kPlain);
  static Tensor full(const Shape& shape, double value, TensorOptions options = {});
  /// Shape and options alone: whatever reads or writes values is a `usage` error.
  static Tensor without_values(const Shape& shape, TensorOptions options = {},
                               LayoutId layout = kPlain);
  /// Row-major `values` of T; they are copied, and converted to floating `options.dtype`.
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape, TensorOptions options);
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape, Device device = {}) {
    return from(values, shape, TensorOptions{dtype_of<T>, device});
  }
  /// Copies `shape.count()` row-major elements of `options.dtype` from host memory.
  static Tensor from_host(const void* values, const Shape& shape, TensorOptions options);
  /// Uniform in [0, 1) and standard normal, from the generator that manual_seed sets.
  static Tensor rand(const Shape& shape, TensorOptions options = {});
  static Tensor randn(const Shape& shape, TensorOptions options = {});

  bool defined() const { return impl_ != nullptr; }
  /// False for what without_values() and graph_only() give.
  bool is_allocated() const;
  const Shape& shape() const;
  std::int64_t size(int dimension) const { return shape()[dimension]; }
  std::int64_t numel() const { return shape().count(); }
  DType dtype() const;
  const Device& device() const;
  LayoutId layout() const;
  TensorOptions options() const { return {dtype(), device()}; }

  /// Images begin..end-1 of the batch (first dimension). Shares memory where the layout is
  /// row-major. Differentiable.
  Tensor slice(std::int64_t begin, std::int64_t end) const;
  /// Batch slices of `size` images; the last one may be smaller. Without images one empty slice.
  std::vector<Tensor> split(std::int64_t size) const;
  /// Same values, other shape of as many elements; one extent may be -1. Differentiable.
  Tensor reshape(const std::vector<std::int64_t>& extents) const;
  /// (N, everything else). Differentiable.
  Tensor flatten() const;
  /// The values on `device`: this tensor if it is there already. Differentiable.
  Tensor to(const Device& device) const;
  /// The values as `dtype`. Differentiable.
  Tensor to(DType dtype) const;
  /// The same values in `layout` (this tensor if it has it). Not recorded for backward.
  Tensor with_layout(LayoutId layout) const;
  /// A copy of its own, in the same layout. Not recorded for backward.
  Tensor clone() const;

  /// Overwrites the values with those of `source` (same shape; any device, layout, floating type).
  void copy_(const Tensor& source);
  void fill_(double value);
  void zero_() { fill_(0); }
  /// Moves the values into `layout`; handles of this tensor see it, slices made before do not.
  void relayout_(LayoutId layout);

  /// The value of a one-element tensor. Waits for the device.
  double item() const;
  /// Row-major values, converted. Waits for the device.
  template <class T>
  std::vector<T> to_vector() const;
  /// Row-major bytes in the tensor's own type. Waits for the device.
  std::vector<std::byte> to_bytes() const;

  /// Whether backward computes a gradient for this tensor.
  bool requires_grad() const;
  /// For leaves (tensors not made by a recorded op) of floating type.
  Tensor& set_requires_grad(bool value = true);
  bool is_leaf() const;
  /// The accumulated gradient; undefined before the first backward. Same layout as the tensor.
  Tensor& grad() const;
  /// Backward from this one-element tensor, as autograd/backward.h's backward().
  void backward() const;
  /// The same values, unknown to autograd.
  Tensor detach() const;
  /// This tensor's place in the graph, without its values: a root of backward() all the same, so
  /// that the values can go as soon as nobody reads them. A leaf is given as it is.
  Tensor graph_only() const;
  /// Calls `hook` with this leaf when a backward has made its gradient final. Returns its number.
  std::uint64_t on_gradient(std::function<void(Tensor&)> hook) const;
  /// Takes the hook of that number away; not from within a hook.
  void remove_gradient_hook(std::uint64_t number) const;

  /// What kernels work on. `usage` without values.
  Buffer buffer() const;
  /// Elements stored, a private layout's padding included.
  std::int64_t stored_count() const;
  const std::shared_ptr<Storage>& storage() const;
  /// Call before queueing a write through buffer(): autograd learns of it, and it waits for copies
  /// of the old values to other devices.
  void before_write() const;

  /// Autograd's view. impl() identifies the tensor among its handles.
  struct Impl;
  const std::shared_ptr<Impl>& impl() const { return impl_; }
  explicit Tensor(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

struct Tensor::Impl {
  std::shared_ptr<Storage> storage;
  std::size_t offset = 0;  // bytes
  Shape shape;
  DType dtype = DType::f32;
  LayoutId layout = kPlain;

  bool requires_grad = false;
  Tensor grad;
  std::shared_ptr<Node> node;  // what made it; null for leaves
  struct Hook {
    std::uint64_t number;
    std::function<void(Tensor&)> call;
  };
  std::vector<Hook> hooks;
  std::uint64_t next_hook = 0;
};

/// "f32 (8, 3, 32, 32) on cpu:0".
std::string describe(const Tensor& tensor);

/// Throws `usage` that names both devices unless all defined tensors are on one.
void check_same_device(const char* op, std::initializer_list<Tensor> tensors);

}  // namespace convoy
