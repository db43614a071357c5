#include "engine/tensor/tensor.h"

#include <algorithm>
#include <cstring>

#include "engine/tensor/storage.h"
#include "kernels/base/error.h"
#include "kernels/kernel_list.h"

namespace convoy {
namespace {

const Tensor::Impl& checked(const Tensor& tensor) {
  CONVOY_CHECK(tensor.defined(), "tensor: used before it was given a value");
  return *tensor.impl();
}

std::size_t stored_bytes(const Tensor& tensor) {
  const Tensor::Impl& impl = checked(tensor);
  if (impl.layout == kPlain) return bytes_of(impl.shape, impl.dtype);
  return context(tensor.device()).kernels().layout_bytes(impl.layout, impl.shape, impl.dtype);
}

}  // namespace

const Shape& Tensor::shape() const {
  return checked(*this).shape;
}
DType Tensor::dtype() const {
  return checked(*this).dtype;
}
const Device& Tensor::device() const {
  return checked(*this).storage->device();
}
LayoutId Tensor::layout() const {
  return checked(*this).layout;
}
const std::shared_ptr<Storage>& Tensor::storage() const {
  return checked(*this).storage;
}
void Tensor::before_write() const {
  const std::shared_ptr<Storage>& memory = storage();
  memory->await_readers(current_stream(memory->device()));
  memory->raise_version();
}

Buffer Tensor::buffer() const {
  const Impl& impl = checked(*this);
  CONVOY_CHECK(impl.storage->is_allocated(),
               "tensor: {} has no values: they were freed (graph_only), or never made "
               "(materialize its module)",
               describe(*this));
  return {impl.storage->data() + impl.offset, impl.dtype, impl.layout};
}

std::int64_t Tensor::stored_count() const {
  return static_cast<std::int64_t>(stored_bytes(*this) / size_of(dtype()));
}

bool Tensor::is_allocated() const {
  return checked(*this).storage->is_allocated();
}

bool Tensor::requires_grad() const {
  return impl_ && (impl_->requires_grad || impl_->node);
}

bool Tensor::is_leaf() const {
  return !checked(*this).node;
}

Tensor& Tensor::grad() const {
  checked(*this);
  return impl_->grad;
}

Tensor& Tensor::set_requires_grad(bool value) {
  checked(*this);
  CONVOY_CHECK(is_leaf(), "set_requires_grad: {} was made by an op, only leaves can be set",
               describe(*this));
  CONVOY_CHECK(!value || is_floating(dtype()), "set_requires_grad: {} is not of a floating type",
               describe(*this));
  impl_->requires_grad = value;
  return *this;
}

std::uint64_t Tensor::on_gradient(std::function<void(Tensor&)> hook) const {
  CONVOY_CHECK(is_leaf(), "on_gradient: {} was made by an op, hooks are for leaves",
               describe(*this));
  impl_->hooks.push_back({impl_->next_hook, std::move(hook)});
  return impl_->next_hook++;
}

void Tensor::remove_gradient_hook(std::uint64_t number) const {
  checked(*this);
  std::erase_if(impl_->hooks, [&](const Impl::Hook& hook) { return hook.number == number; });
}

Tensor Tensor::detach() const {
  auto impl = std::make_shared<Impl>();
  const Impl& from = checked(*this);
  impl->storage = from.storage;
  impl->offset = from.offset;
  impl->shape = from.shape;
  impl->dtype = from.dtype;
  impl->layout = from.layout;
  return Tensor(std::move(impl));
}

Tensor Tensor::graph_only() const {
  if (is_leaf()) return *this;
  Tensor result = without_values(shape(), options(), layout());
  result.impl_->node = impl_->node;
  return result;
}

Tensor Tensor::with_layout(LayoutId layout) const {
  if (layout == this->layout()) return *this;
  Tensor result = empty(shape(), options(), layout);
  context(device()).kernels().reorder(current_stream(device()), shape(), buffer(), result.buffer());
  return result;
}

void Tensor::relayout_(LayoutId layout) {
  if (layout == this->layout()) return;
  const Tensor moved = with_layout(layout);
  impl_->storage = moved.impl_->storage;
  impl_->offset = 0;
  impl_->layout = layout;
}

Tensor Tensor::clone() const {
  Tensor result = empty_like(*this);
  context(device()).copy(current_stream(device()), result.buffer().data, buffer().data,
                         stored_bytes(*this));
  return result;
}

std::string describe(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined tensor";
  return fmt::format("{} {} on {}", name(tensor.dtype()), to_string(tensor.shape()),
                     to_string(tensor.device()));
}

void check_same_device(const char* op, std::initializer_list<Tensor> tensors) {
  const Tensor* first = nullptr;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    if (!first) first = &tensor;
    CONVOY_CHECK(tensor.device() == first->device(),
                 "{}: operands are on different devices, {} and {}: move one with .to(device)", op,
                 to_string(first->device()), to_string(tensor.device()));
  }
}

}  // namespace convoy
