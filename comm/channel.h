// One direction between two workers as a row of pieces: the sender writes a piece where the
// channel says, the receiver reads it where it lies. Collectives and messages are written once, on
// channels; in memory, shared memory and MPI there is a kind of channel each.
#pragma once

#include <cstddef>
#include <span>

namespace convoy {

class HostMemory;
class Waiter;

/// The sender's end. For one thread at a time.
class SendEnd {
 public:
  virtual ~SendEnd() = default;
  /// Room for the next piece, piece_bytes() of it; waits while the channel is full.
  virtual std::span<std::byte> reserve(Waiter& waiter) = 0;
  /// Sends the first `bytes` of what reserve() gave.
  virtual void commit(std::size_t bytes) = 0;
  /// Returns when nothing that was committed needs this side any more.
  virtual void flush(Waiter& waiter) = 0;
};

/// The receiver's end. For one thread at a time.
class ReceiveEnd {
 public:
  virtual ~ReceiveEnd() = default;
  /// The oldest piece that was not released; waits for it.
  virtual std::span<const std::byte> front(Waiter& waiter) = 0;
  /// The piece that front() gave is done with.
  virtual void release() = 0;
};

/// The channels between one worker of a group and the others. A channel holds at least two pieces.
class Fabric {
 public:
  /// Tags of collectives: values to be joined or handed out, and results on their way back. Groups
  /// that were split off use the negative tags below and the tags above kLastTag in the same way.
  static constexpr int kCollectives = -1;
  static constexpr int kResults = -2;
  /// Messages have tags from 0 to this one.
  static constexpr int kLastTag = 65535;

  virtual ~Fabric() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* name() const = 0;
  /// Most bytes of a piece.
  virtual std::size_t piece_bytes() const = 0;
  /// The end of the channel of `tag` to or from `peer`, opened on first use; from any thread.
  virtual SendEnd& to(int peer, int tag) = 0;
  virtual ReceiveEnd& from(int peer, int tag) = 0;
  /// Whether this worker and `peer` read each other's memory() where it lies.
  virtual bool shares_memory(int peer) const = 0;
  /// Of this process; shared by its workers.
  virtual HostMemory& memory() = 0;
};

}  // namespace convoy
