// A channel in memory that both workers see: a ring of slots for one sender and one receiver.
// Nothing in it is a pointer, so two processes may map it at different places.
//
//   [committed] [released] [shape] [bytes, slot 0] [bytes, slot 1] ...      all on cache lines
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "comm/channel.h"

namespace convoy {

/// Slots of a ring, at least 2, and the bytes that each takes.
struct RingShape {
  std::uint64_t slots = 4;
  std::uint64_t slot_bytes = 128 * 1024;
};

/// The memory itself. Slots are untouched until they are used.
class MemoryRing {
 public:
  /// Bytes that a ring of `shape` takes.
  static std::size_t bytes(const RingShape& shape);
  /// Makes an empty ring at `memory`: bytes(shape) of it, on a cache line.
  static MemoryRing* make(void* memory, const RingShape& shape);
  /// The ring that was made at `memory`, maybe by another process.
  static MemoryRing* at(void* memory) { return static_cast<MemoryRing*>(memory); }

  const RingShape& shape() const { return shape_; }

 private:
  friend class RingSendEnd;
  friend class RingReceiveEnd;
  static constexpr std::size_t kLine = 64;
  explicit MemoryRing(const RingShape& shape) : shape_(shape) {}
  /// The bytes that piece number `piece` has, and where they are.
  std::uint64_t& bytes_of(std::uint64_t piece);
  std::byte* data_of(std::uint64_t piece);

  alignas(kLine) std::atomic<std::uint64_t> committed_{0};  // pieces sent so far
  alignas(kLine) std::atomic<std::uint64_t> released_{0};   // pieces done with so far
  alignas(kLine) RingShape shape_;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// The sender's end of a ring, which must outlive it.
class RingSendEnd final : public SendEnd {
 public:
  explicit RingSendEnd(MemoryRing& ring);
  std::span<std::byte> reserve(Waiter& waiter) override;
  void commit(std::size_t bytes) override;
  /// At once: what was committed lies in the ring.
  void flush(Waiter&) override {}

 private:
  MemoryRing& ring_;
  std::uint64_t committed_;
  std::uint64_t released_;  // as last seen
};

/// The receiver's end of a ring, which must outlive it.
class RingReceiveEnd final : public ReceiveEnd {
 public:
  explicit RingReceiveEnd(MemoryRing& ring);
  std::span<const std::byte> front(Waiter& waiter) override;
  void release() override;

 private:
  MemoryRing& ring_;
  std::uint64_t committed_;  // as last seen
  std::uint64_t released_;
};

}  // namespace convoy
