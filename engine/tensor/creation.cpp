// How tensors come into being: empty, filled, from host memory, from the random generator.
#include <cstring>

#include "engine/tensor/random.h"
#include "engine/tensor/storage.h"
#include "engine/tensor/tensor.h"
#include "kernels/base/error.h"
#include "kernels/kernel_list.h"

namespace convoy {
namespace {

template <class To, class From>
std::vector<std::byte> converted(const std::vector<From>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(To));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const To value = static_cast<To>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(To), &value, sizeof(To));
  }
  return bytes;
}

template <class T>
std::vector<std::byte> bytes_as(DType dtype, const std::vector<T>& values) {
  switch (dtype) {
    case DType::f32:
      return converted<float>(values);
    case DType::f64:
      return converted<double>(values);
    case DType::i64:
      return converted<std::int64_t>(values);
    case DType::i32:
      return converted<std::int32_t>(values);
    case DType::u8:
      return converted<std::uint8_t>(values);
    case DType::bf16:
      break;
  }
  CONVOY_FAIL(usage, "tensor: bf16 values cannot be made on the host in this build");
}

}  // namespace

Tensor Tensor::empty(const Shape& shape, TensorOptions options, LayoutId layout) {
  const std::size_t bytes =
      layout == kPlain
          ? bytes_of(shape, options.dtype)
          : context(options.device).kernels().layout_bytes(layout, shape, options.dtype);
  return over(std::make_shared<Storage>(options.device, bytes), shape, options.dtype, layout);
}

Tensor Tensor::over(std::shared_ptr<Storage> storage, const Shape& shape, DType dtype,
                    LayoutId layout) {
  auto impl = std::make_shared<Impl>();
  impl->storage = std::move(storage);
  impl->shape = shape;
  impl->dtype = dtype;
  impl->layout = layout;
  return Tensor(std::move(impl));
}

Tensor Tensor::without_values(const Shape& shape, TensorOptions options, LayoutId layout) {
  auto impl = std::make_shared<Impl>();
  impl->shape = shape;
  impl->dtype = options.dtype;
  impl->layout = layout;
  impl->storage = std::make_shared<Storage>(options.device);
  return Tensor(std::move(impl));
}

Tensor Tensor::empty_like(const Tensor& other) {
  return empty(other.shape(), other.options(), other.layout());
}

Tensor Tensor::full(const Shape& shape, double value, TensorOptions options) {
  Tensor result = empty(shape, options);
  result.fill_(value);
  return result;
}

Tensor Tensor::zeros(const Shape& shape, TensorOptions options) {
  return full(shape, 0, options);
}

Tensor Tensor::ones(const Shape& shape, TensorOptions options) {
  return full(shape, 1, options);
}

Tensor Tensor::zeros_like(const Tensor& other) {
  Tensor result = empty_like(other);
  result.zero_();
  return result;
}

Tensor Tensor::from_host(const void* values, const Shape& shape, TensorOptions options) {
  Tensor result = empty(shape, options);
  context(options.device)
      .copy_in(current_stream(options.device), result.buffer().data, values,
               bytes_of(shape, options.dtype));
  return result;
}

template <class T>
Tensor Tensor::from(const std::vector<T>& values, const Shape& shape, TensorOptions options) {
  CONVOY_CHECK(static_cast<std::int64_t>(values.size()) == shape.count(),
               "tensor: {} values given for shape {}", values.size(), to_string(shape));
  return from_host(bytes_as(options.dtype, values).data(), shape, options);
}
template Tensor Tensor::from(const std::vector<float>&, const Shape&, TensorOptions);
template Tensor Tensor::from(const std::vector<double>&, const Shape&, TensorOptions);
template Tensor Tensor::from(const std::vector<std::int64_t>&, const Shape&, TensorOptions);
template Tensor Tensor::from(const std::vector<std::int32_t>&, const Shape&, TensorOptions);
template Tensor Tensor::from(const std::vector<std::uint8_t>&, const Shape&, TensorOptions);

Tensor Tensor::rand(const Shape& shape, TensorOptions options) {
  bytes_of(shape, DType::f64);  // of the numbers on the host: refused before they are made
  return from(next_random_stream().uniform(shape.count()), shape, options);
}

Tensor Tensor::randn(const Shape& shape, TensorOptions options) {
  bytes_of(shape, DType::f64);
  return from(next_random_stream().normal(shape.count()), shape, options);
}

void Tensor::fill_(double value) {
  if (!is_floating(dtype())) {
    const std::vector<double> values(static_cast<std::size_t>(numel()), value);
    copy_(from(values, shape(), options()));
    return;
  }
  before_write();
  context(device()).kernels().fill(current_stream(device()), stored_count(), value, buffer());
}

}  // namespace convoy
