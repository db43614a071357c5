// The collectives, written once on channels. Every rank of the group makes the same call with the
// same counts. Values are moved in pieces, so that adding and moving overlap and counts may have 64
// bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/communicator.h"
#include "comm/exchange.h"

namespace convoy {

/// In which order the values of the ranks are added. `ranks`: 0, 1, 2, ... for every element, by
/// the owner of its chunk: the bits depend on nothing else. `ring`: chunk c begins with rank c and
/// goes once around: fewer channels, but the bits depend on where chunks end.
enum class ReduceOrder { ranks, ring };

/// The arguments of all_reduce and reduce_scatter.
struct ReduceCall {
  const std::byte* in;
  std::byte* out;
  std::int64_t count;
  DType dtype;
  Reduction reduction;

  std::int64_t element() const { return static_cast<std::int64_t>(size_of(dtype)); }
};

/// out = reduction over ranks of in; `in` may be `out`.
void all_reduce(Exchange& exchange, const ReduceCall& call, ReduceOrder order);
/// This rank's chunk goes to the start of `out`, which may be where that chunk lies in `in`.
void reduce_scatter(Exchange& exchange, const ReduceCall& call, ReduceOrder order);
/// `in` may be this rank's place in `out`.
void all_gather(Exchange& exchange, const void* in, void* out, std::size_t bytes);
void broadcast(Exchange& exchange, void* values, std::size_t bytes, int root);
void barrier(Exchange& exchange);

/// One order each; `all_reduce` and `reduce_scatter` choose.
void all_reduce_in_rank_order(Exchange& exchange, const ReduceCall& call);
/// Where all ranks read each other's `in` and `out` where they lie; else false, on all ranks.
bool all_reduce_in_place(Exchange& exchange, const ReduceCall& call);
void reduce_scatter_in_rank_order(Exchange& exchange, const ReduceCall& call);
void all_reduce_around_ring(Exchange& exchange, const ReduceCall& call);
void reduce_scatter_around_ring(Exchange& exchange, const ReduceCall& call);

/// How a chunk is cut: into pieces of `elements`, the last one shorter.
struct Pieces {
  std::int64_t elements;

  /// For the chunks of `call` over the ranks of `exchange`; the same on all ranks.
  static Pieces of(const Exchange& exchange, const ReduceCall& call);
  /// The same, of at most `bytes`.
  static Pieces at_most(std::int64_t bytes, const Exchange& exchange, const ReduceCall& call);
  /// Number of pieces of the longest chunk.
  static std::int64_t longest(std::int64_t count, int ranks, std::int64_t elements);
  /// Piece `index` of `chunk`; empty beyond the end.
  Chunk at(Chunk chunk, std::int64_t index) const;
};

}  // namespace convoy
