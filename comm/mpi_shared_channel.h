// A channel through a ring in shared memory, between two processes of a host. The sender makes the
// ring on opening its end and tells the receiver in one MPI message where it is, so that it never
// waits for the receiver; the receiver opens it when it wants its first piece.
#pragma once

#include <memory>
#include <optional>

#include "comm/memory_ring.h"
#include "comm/mpi_channel.h"
#include "comm/shared_memory.h"

namespace convoy {

class SharedSendEnd final : public SendEnd {
 public:
  /// Whether flush() waits until the receiver has opened the ring: then it stays, even if this
  /// process ends. Else what was committed is there for as long as this end is.
  enum class Flush { waits, looks };
  SharedSendEnd(const MpiRoute& route, const RingShape& shape, Flush flush);
  ~SharedSendEnd() override;
  std::span<std::byte> reserve(Waiter& waiter) override { return ring_.reserve(waiter); }
  void commit(std::size_t bytes) override { ring_.commit(bytes); }
  void flush(Waiter& waiter) override;

 private:
  SharedMemory memory_;
  RingSendEnd ring_;
  std::unique_ptr<SharedMemoryAddress> offer_;  // MPI reads it
  MpiRequest sent_;
  const Flush flush_;
  bool opened_ = false;
};

class SharedReceiveEnd final : public ReceiveEnd {
 public:
  SharedReceiveEnd(const MpiRoute& route, const RingShape& shape);
  ~SharedReceiveEnd() override;
  std::span<const std::byte> front(Waiter& waiter) override;
  void release() override { ring_->release(); }

 private:
  void open(Waiter& waiter);

  const MpiRoute route_;
  const RingShape shape_;
  std::unique_ptr<SharedMemoryAddress> offer_;  // MPI writes to it
  MpiRequest arrival_;
  std::optional<SharedMemory> memory_;
  std::optional<RingReceiveEnd> ring_;
};

}  // namespace convoy
