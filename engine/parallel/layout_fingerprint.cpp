#include "engine/parallel/layout_fingerprint.h"

#include <cstring>

#include "engine/autograd/grad_mode.h"
#include "kernels/base/context.h"

namespace convoy {
namespace {

// Numbers that f32 holds exactly and that are never 0, which is what padding holds.
Tensor numbered_elements(const Shape& shape, const TensorOptions& options) {
  constexpr std::int64_t kLargest = (1 << 24) - 1;
  std::vector<float> values(static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<std::int64_t>(i) % kLargest + 1);
  }
  return Tensor::from(values, shape, options);
}

// FNV-1a, a word at a time.
std::uint64_t hash_of(const std::vector<std::byte>& bytes) {
  std::uint64_t hash = 14695981039346656037u;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof hash) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    hash = (hash ^ word) * 1099511628211u;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

std::int64_t layout_fingerprint(const Tensor& tensor) {
  if (tensor.layout() == kPlain) return 0;
  const NoGradScope no_grad;
  const Tensor moved =
      numbered_elements(tensor.shape(), tensor.options()).with_layout(tensor.layout());
  std::vector<std::byte> stored(static_cast<std::size_t>(moved.stored_count()) *
                                size_of(moved.dtype()));
  context(moved.device())
      .copy_out(current_stream(moved.device()), stored.data(), moved.buffer().data, stored.size());
  return static_cast<std::int64_t>(hash_of(stored) | 1);  // never the 0 of row-major
}

}  // namespace convoy
