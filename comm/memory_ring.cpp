#include "comm/memory_ring.h"

#include <new>

#include "comm/waiter.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

std::uint64_t whole_lines(std::uint64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

std::size_t MemoryRing::bytes(const RingShape& shape) {
  return sizeof(MemoryRing) + shape.slots * (kLine + whole_lines(shape.slot_bytes));
}

MemoryRing* MemoryRing::make(void* memory, const RingShape& shape) {
  CONVOY_CHECK(shape.slots >= 2 && shape.slot_bytes >= 64,
               "ring: {} slots of {} bytes, expected at least 2 of 64", shape.slots,
               shape.slot_bytes);
  return new (memory) MemoryRing(shape);
}

std::byte* MemoryRing::data_of(std::uint64_t piece) {
  const std::uint64_t stride = kLine + whole_lines(shape_.slot_bytes);
  return reinterpret_cast<std::byte*>(this) + sizeof(MemoryRing) + kLine +
         piece % shape_.slots * stride;
}

std::uint64_t& MemoryRing::bytes_of(std::uint64_t piece) {
  return *reinterpret_cast<std::uint64_t*>(data_of(piece) - kLine);
}

RingSendEnd::RingSendEnd(MemoryRing& ring)
    : ring_(ring), committed_(ring.committed_.load()), released_(ring.released_.load()) {}

std::span<std::byte> RingSendEnd::reserve(Waiter& waiter) {
  if (committed_ - released_ == ring_.shape_.slots) {
    waiter.until([this] {
      released_ = ring_.released_.load(std::memory_order_acquire);
      return committed_ - released_ < ring_.shape_.slots;
    });
  }
  return {ring_.data_of(committed_), ring_.shape_.slot_bytes};
}

void RingSendEnd::commit(std::size_t bytes) {
  ring_.bytes_of(committed_) = bytes;
  ring_.committed_.store(++committed_, std::memory_order_release);
}

RingReceiveEnd::RingReceiveEnd(MemoryRing& ring)
    : ring_(ring), committed_(ring.committed_.load()), released_(ring.released_.load()) {}

std::span<const std::byte> RingReceiveEnd::front(Waiter& waiter) {
  if (committed_ == released_) {
    waiter.until([this] {
      committed_ = ring_.committed_.load(std::memory_order_acquire);
      return committed_ != released_;
    });
  }
  return {ring_.data_of(released_), ring_.bytes_of(released_)};
}

void RingReceiveEnd::release() {
  ring_.released_.store(++released_, std::memory_order_release);
}

}  // namespace convoy
