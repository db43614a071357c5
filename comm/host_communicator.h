// A communicator that moves this machine's memory. Its work is done by blocking calls; those of
// Communicator run them in stream order. Buffers of a GPU are copied to this memory and back by the
// calling thread, which waits for the other ranks: correct, and slower than NCCL.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/communicator.h"
#include "comm/progress.h"
#include "comm/waiter.h"

namespace convoy {

/// The blocking calls may be made from any thread, but by one thread at a time. Queued collectives
/// run in the order of their calls, on whatever streams.
class HostCommunicator : public Communicator {
 public:
  virtual void all_reduce_now(const void* in, void* out, std::int64_t count, DType dtype,
                              Reduction reduction) = 0;
  virtual void reduce_scatter_now(const void* in, void* out, std::int64_t count, DType dtype,
                                  Reduction reduction) = 0;
  virtual void all_gather_now(const void* in, void* out, std::size_t bytes) = 0;
  virtual void broadcast_now(void* values, std::size_t bytes, int root) = 0;
  virtual void send_now(const void* values, std::size_t bytes, int peer, int tag) = 0;
  virtual void receive_now(void* values, std::size_t bytes, int peer, int tag) = 0;
  /// send_now() and receive_now() by a thread beside the worker's own. The worker does not count as
  /// waiting meanwhile; `wait` may end the call, which leaves the tag of no use if half a message
  /// has moved.
  virtual void send_aside(const void* values, std::size_t bytes, int peer, int tag,
                          const SideWait& wait) = 0;
  virtual void receive_aside(void* values, std::size_t bytes, int peer, int tag,
                             const SideWait& wait) = 0;
  /// Where the worker's waits are noted; may be null.
  virtual ProgressBoard* board() const = 0;
  /// Raised by abort(), and by whatever ends the group.
  virtual std::shared_ptr<AbortFlag> abort_flag() const = 0;
  /// split() with the type that it has.
  virtual std::unique_ptr<HostCommunicator> split_host(int color, int key) = 0;

  void all_reduce(ConstBuffer in, Buffer out, std::int64_t count, Reduction reduction,
                  Stream& stream) override;
  void reduce_scatter(ConstBuffer in, Buffer out, std::int64_t count, Reduction reduction,
                      Stream& stream) override;
  void all_gather(ConstBuffer in, Buffer out, std::int64_t count, Stream& stream) override;
  void broadcast(Buffer values, std::int64_t count, int root, Stream& stream) override;
  void send(ConstBuffer values, std::int64_t count, int peer, int tag, Stream& stream) override;
  void receive(Buffer values, std::int64_t count, int peer, int tag, Stream& stream) override;
  /// After everything that was queued.
  std::unique_ptr<Communicator> split(int color, int key) override;

  /// Blocks until everything that was queued has run: before a blocking call, and before the end.
  void wait_for_queued();

 private:
  /// What a call reads and what it writes, in the memory of the stream's device.
  struct Sides {
    const void* in = nullptr;
    std::size_t in_bytes = 0;
    void* out = nullptr;
    std::size_t out_bytes = 0;
  };
  /// The blocking call on this machine's memory.
  using HostCall = std::function<void(const void* in, void* out)>;

  /// In the stream's order; for a GPU at once, on copies.
  void queue_collective(Stream& stream, const Sides& sides, HostCall work);
  void queue_message(Stream& stream, const Sides& sides, HostCall work);

  std::mutex mutex_;
  Event collective_;             // the end of the last one
  std::vector<Event> messages_;  // ends of those that may still be on their way
};

}  // namespace convoy
