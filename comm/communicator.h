// How buffers move between workers: collectives and tagged messages, queued on a stream as kernels
// are. Every worker has a communicator of its own and makes the same collective calls in the same
// order; a failure surfaces at the next synchronize() of the stream, or at the call that blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/base/buffer.h"
#include "kernels/base/error.h"
#include "kernels/base/stream.h"

namespace convoy {

/// How all_reduce and reduce_scatter join the values of the ranks. `mean` is the sum divided by the
/// number of ranks and needs a floating type.
enum class Reduction { sum, mean, max };

/// A part of `count` elements: those from `begin` to `end - 1`.
struct Chunk {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t count() const { return end - begin; }
};

/// The part of `count` elements that rank `rank` of `size` owns in a reduce-scatter: from
/// floor(rank * count / size) on.
Chunk chunk_of(std::int64_t count, int rank, int size);

/// One worker's end of a group. Counts are elements of the buffer's type, in 64 bits; a buffer of a
/// private layout is taken as the elements that it stores. Collectives give all ranks the same
/// bits: sums are made in rank order, whatever the sizes.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// "thread", "mpi", "nccl".
  virtual const char* name() const = 0;

  /// out = reduction over ranks of in; `in` may be `out`.
  virtual void all_reduce(ConstBuffer in, Buffer out, std::int64_t count, Reduction reduction,
                          Stream& stream) = 0;
  /// Reduces `count` elements and leaves this rank's chunk_of() of them at the start of `out`.
  virtual void reduce_scatter(ConstBuffer in, Buffer out, std::int64_t count, Reduction reduction,
                              Stream& stream) = 0;
  /// Every rank gives `count` elements; `out` takes size() * count of them, in rank order.
  virtual void all_gather(ConstBuffer in, Buffer out, std::int64_t count, Stream& stream) = 0;
  /// The values of rank `root` to all.
  virtual void broadcast(Buffer values, std::int64_t count, int root, Stream& stream) = 0;

  /// Queues a message to `peer`; messages of one tag between two ranks arrive in order, others do
  /// not wait for each other when they are on streams of their own. Count 0 is a message too.
  virtual void send(ConstBuffer values, std::int64_t count, int peer, int tag, Stream& stream) = 0;
  /// Queues the receipt of one message. `communication` if its size differs from `count` elements.
  virtual void receive(Buffer values, std::int64_t count, int peer, int tag, Stream& stream) = 0;

  /// Memory of this machine, zeros on a page, that other ranks of the host read where it lies: sums
  /// of such values need fewer copies. Null where it brings nothing. The bits are the same.
  virtual std::shared_ptr<std::byte> make_memory(std::size_t /*bytes*/) { return nullptr; }

  /// Blocks the calling thread until all ranks are here.
  virtual void barrier() = 0;
  /// A group of those that give the same `color`, ordered by `key`, then by rank; null for a
  /// negative color. Collective; blocks.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;
  /// From any thread: every blocked or later call of this group in this process, and of groups
  /// split from it, throws `why`. The group is of no use afterwards.
  virtual void abort(const Error& why) = 0;
};

}  // namespace convoy
