#include "comm/collectives.h"

#include <algorithm>
#include <cstring>

namespace convoy {
namespace {

// Bytes of a piece: below the first, waiting costs more than moving; above the second, what is on
// its way between two cores leaves their caches.
constexpr std::int64_t kSmallestPiece = 16 * 1024;
constexpr std::int64_t kLargestPiece = 64 * 1024;

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0);
}

/// Children of place `place` in a binomial tree over `size` places: place + 1, 2, 4, ... up to the
/// lowest bit of it.
template <class Visit>
void for_each_child(int place, int size, Visit&& visit) {
  for (int step = 1; place + step < size && (place & step) == 0; step *= 2) visit(place + step);
}

}  // namespace

Chunk chunk_of(std::int64_t count, int rank, int size) {
  // floor(rank * count / size) without a product that leaves 64 bits.
  const auto begin_of = [&](int r) { return r * (count / size) + r * (count % size) / size; };
  return {begin_of(rank), begin_of(rank + 1)};
}

Pieces Pieces::of(const Exchange& exchange, const ReduceCall& call) {
  const auto room = static_cast<std::int64_t>(exchange.piece_bytes());
  return at_most(std::min(room, kLargestPiece), exchange, call);
}

Pieces Pieces::at_most(std::int64_t bytes, const Exchange& exchange, const ReduceCall& call) {
  const std::int64_t most = bytes / call.element();
  const std::int64_t least = std::min(most, kSmallestPiece / call.element());
  const std::int64_t chunk = divide_up(call.count, exchange.size());
  // Four pieces at least, where they are not too small: the first one is on its way early.
  return {std::clamp(divide_up(divide_up(chunk, 4), 16) * 16, least, most)};
}

std::int64_t Pieces::longest(std::int64_t count, int ranks, std::int64_t elements) {
  return divide_up(divide_up(count, ranks), elements);
}

Chunk Pieces::at(Chunk chunk, std::int64_t index) const {
  return {std::min(chunk.begin + index * elements, chunk.end),
          std::min(chunk.begin + (index + 1) * elements, chunk.end)};
}

void all_reduce(Exchange& exchange, const ReduceCall& call, ReduceOrder order) {
  if (order == ReduceOrder::ring) return all_reduce_around_ring(exchange, call);
  all_reduce_in_rank_order(exchange, call);
}

void reduce_scatter(Exchange& exchange, const ReduceCall& call, ReduceOrder order) {
  if (order == ReduceOrder::ring) return reduce_scatter_around_ring(exchange, call);
  reduce_scatter_in_rank_order(exchange, call);
}

void all_gather(Exchange& exchange, const void* in, void* out, std::size_t bytes) {
  const auto* mine = static_cast<const std::byte*>(in);
  auto* all = static_cast<std::byte*>(out);
  const std::size_t piece = exchange.piece_bytes();
  for (std::size_t begin = 0; begin < bytes; begin += piece) {
    const std::size_t length = std::min(piece, bytes - begin);
    for (int step = 1; step < exchange.size(); ++step) {
      exchange.send(exchange.after(step), Lane::values, mine + begin, length);
    }
    for (int step = 1; step < exchange.size(); ++step) {
      const int peer = exchange.before(step);
      exchange.take(peer, Lane::values, all + peer * bytes + begin, length);
    }
  }
  std::byte* place = all + exchange.rank() * bytes;
  if (bytes && place != mine) std::memcpy(place, mine, bytes);
}

void broadcast(Exchange& exchange, void* values, std::size_t bytes, int root) {
  const int size = exchange.size();
  const int place = (exchange.rank() - root + size) % size;
  const auto rank_at = [&](int at) { return (at + root) % size; };
  const std::size_t piece = exchange.piece_bytes();
  for (std::size_t begin = 0; begin < bytes; begin += piece) {
    const std::size_t length = std::min(piece, bytes - begin);
    std::byte* at = static_cast<std::byte*>(values) + begin;
    if (place != 0) exchange.take(rank_at(place & (place - 1)), Lane::values, at, length);
    for_each_child(place, size,
                   [&](int child) { exchange.send(rank_at(child), Lane::values, at, length); });
  }
}

/// In round k each rank tells the one 2^k places on; after the last, all have heard of all.
void barrier(Exchange& exchange) {
  for (int step = 1; step < exchange.size(); step *= 2) {
    exchange.send(exchange.after(step), Lane::values, nullptr, 0);
    exchange.take(exchange.before(step), Lane::values, nullptr, 0);
  }
}

}  // namespace convoy
