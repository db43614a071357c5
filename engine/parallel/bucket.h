// One bucket of gradients: a stretch of memory in which they lie one after the other, each at a
// multiple of 64 bytes, so that the reduced gradients can be used where they lie.
//
//     | fc.bias | pad | fc.weight        | tail |        the tail takes counts beside the gradients
#pragma once

#include <cstdint>
#include <vector>

#include "engine/tensor/storage.h"
#include "engine/tensor/tensor.h"
#include "kernels/base/stream.h"

namespace convoy {

/// Not thread-safe. Its memory goes over to the gradients of a window: the next one takes the same,
/// where it was given some and none of those gradients lives any more, or else other.
class Bucket {
 public:
  /// A gradient's place.
  struct Slot {
    std::size_t member;  ///< its number among the lane's parameters
    Shape shape;
    LayoutId layout;
    std::int64_t offset = 0;  ///< elements
    std::int64_t count = 0;   ///< elements stored
  };

  Bucket(const TensorOptions& options, std::vector<Slot> slots, std::int64_t tail);

  /// Memory for it, bytes() of it; without any it takes the device's.
  void set_memory(std::shared_ptr<std::byte> memory);
  std::size_t bytes() const { return static_cast<std::size_t>(count_) * size_of(options_.dtype); }

  const std::vector<Slot>& slots() const { return slots_; }
  /// Queues slot = gradient * factor on the current stream of the device, and returns the slot as
  /// a gradient. A factor of 0 gives zeros, whatever the gradient holds.
  Tensor collect(const Slot& slot, const Tensor& gradient, double factor);
  Tensor collect_zeros(const Slot& slot);
  /// All slots have been collected.
  bool is_full() const { return collected_ == slots_.size(); }
  /// Queues the tail's values on the current stream.
  void set_tail(const std::vector<double>& values);
  /// The tail's values after `stream`'s work so far.
  std::vector<double> tail(Stream& stream) const;
  /// The whole of it; to be written next.
  Buffer whole() const;
  std::int64_t count() const { return count_; }
  /// The window is over: the memory belongs to the gradients alone.
  void release();

 private:
  Tensor take_memory() const;
  void allocate();
  Tensor part(std::int64_t offset, const Shape& shape, LayoutId layout) const;

  TensorOptions options_;
  std::vector<Slot> slots_;
  std::int64_t tail_offset_ = 0;
  std::int64_t tail_ = 0;
  std::int64_t count_ = 0;
  std::shared_ptr<Storage> given_;
  Tensor memory_;
  std::size_t collected_ = 0;
};

}  // namespace convoy
