// Values in and out of tensors: copies between devices and the host.
#include <cstring>

#include "engine/tensor/storage.h"
#include "engine/tensor/tensor.h"
#include "kernels/base/bf16.h"
#include "kernels/base/error.h"
#include "kernels/kernel_list.h"

namespace convoy {
namespace {

// Between two devices of the host, or two GPUs: queued on the target's stream, after what the
// source's stream has queued.
void copy_beside(const Tensor& target, const Tensor& source, std::size_t bytes) {
  Stream& stream = current_stream(target.device());
  stream.wait(current_stream(source.device()).record());
  context(target.device()).copy(stream, target.buffer().data, source.buffer().data, bytes);
  source.storage()->use_until(stream.record());
}

// Copies between host and GPU take the host's memory as it is now: its streams are waited for.
void copy_across(const Tensor& target, const Tensor& source, std::size_t bytes) {
  void* const to = target.buffer().data;
  const void* const from = source.buffer().data;
  const Device& home = source.device();
  if (is_gpu(target.device()) == is_gpu(home) &&
      (!is_gpu(home) || target.device().type == home.type)) {
    return copy_beside(target, source, bytes);
  }
  if (!is_gpu(home)) {
    current_stream(home).record().wait();
    return context(target.device()).copy_in(current_stream(target.device()), to, from, bytes);
  }
  CONVOY_CHECK(!is_gpu(target.device()), "copy: no path from {} to {}, expected the same kind",
               to_string(home), to_string(target.device()));
  current_stream(target.device()).record().wait();
  context(home).copy_out(current_stream(home), to, from, bytes);
}

template <class To, class From>
std::vector<To> cast_bytes(const std::vector<std::byte>& bytes) {
  std::vector<From> values(bytes.size() / sizeof(From));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return {values.begin(), values.end()};
}

template <class To>
std::vector<To> cast_bf16(const std::vector<std::byte>& bytes) {
  std::vector<To> result;
  result.reserve(bytes.size() / sizeof(Bf16));
  for (Bf16 value : cast_bytes<Bf16, Bf16>(bytes)) {
    result.push_back(static_cast<To>(static_cast<float>(value)));
  }
  return result;
}

}  // namespace

void Tensor::copy_(const Tensor& source) {
  CONVOY_CHECK(source.shape() == shape(), "copy_: source is {}, target is {}", describe(source),
               describe(*this));
  Tensor values = source.detach();
  if (values.dtype() != dtype()) values = values.to(dtype());
  before_write();
  if (values.device() != device()) {
    values = values.with_layout(kPlain);
    Tensor here = layout() == kPlain ? detach() : empty(shape(), options());
    copy_across(here, values, bytes_of(shape(), dtype()));
    values = std::move(here);
  }
  if (values.storage() != storage() || values.buffer().data != buffer().data) {
    context(device()).kernels().reorder(current_stream(device()), shape(), values.buffer(),
                                        buffer());
  }
}

std::vector<std::byte> Tensor::to_bytes() const {
  const Tensor plain = with_layout(kPlain);
  std::vector<std::byte> bytes(bytes_of(shape(), dtype()));
  context(device()).copy_out(current_stream(device()), bytes.data(), plain.buffer().data,
                             bytes.size());
  return bytes;
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  const std::vector<std::byte> bytes = to_bytes();
  switch (dtype()) {
    case DType::f32:
      return cast_bytes<T, float>(bytes);
    case DType::f64:
      return cast_bytes<T, double>(bytes);
    case DType::i64:
      return cast_bytes<T, std::int64_t>(bytes);
    case DType::i32:
      return cast_bytes<T, std::int32_t>(bytes);
    case DType::u8:
      return cast_bytes<T, std::uint8_t>(bytes);
    case DType::bf16:
      return cast_bf16<T>(bytes);
  }
  CONVOY_FAIL(internal, "to_vector: no type {}", static_cast<int>(dtype()));
}
template std::vector<float> Tensor::to_vector() const;
template std::vector<double> Tensor::to_vector() const;
template std::vector<std::int64_t> Tensor::to_vector() const;
template std::vector<std::int32_t> Tensor::to_vector() const;
template std::vector<std::uint8_t> Tensor::to_vector() const;

double Tensor::item() const {
  CONVOY_CHECK(numel() == 1, "item: {} has {} elements, expected 1", describe(*this), numel());
  return to_vector<double>().front();
}

}  // namespace convoy
