// Sums in rank order: everybody sends its part of chunk c to rank c, who adds the parts of all in
// rank order, piece by piece where they lie in the slots, and hands the results out.
//
//   piece       k-1            k              k+1
//   values                     added          sent
//   results     taken          sent
//
// The three run one piece apart, so that no rank waits for what another has just begun. Small calls
// take one hop: everybody sends all to all and adds for itself, in the same order.
#include <algorithm>
#include <vector>

#include "comm/collectives.h"
#include "comm/reduce.h"

namespace convoy {
namespace {

constexpr std::int64_t kOneHop = 64 * 1024;  // bytes that a rank then sends to all others together

class RankOrder {
 public:
  RankOrder(Exchange& exchange, const ReduceCall& call)
      : exchange_(exchange),
        call_(call),
        pieces_(Pieces::of(exchange, call)),
        sources_(exchange.size()),
        copies_(exchange.size() - 1) {}

  std::int64_t rounds() const {
    return Pieces::longest(call_.count, exchange_.size(), pieces_.elements);
  }

  /// Sends piece `index` of every other rank's chunk.
  void send_values(std::int64_t index) {
    for (int step = 1; step < exchange_.size(); ++step) {
      const int peer = exchange_.after(step);
      const Chunk piece = piece_of(peer, index);
      if (piece.count()) send(peer, Lane::values, call_.in, piece);
    }
  }

  /// Adds the values of all for piece `index` of this rank's chunk and writes them to `out`, as
  /// element 0 that of this chunk or of all chunks.
  void join(std::int64_t index, std::byte* out, std::span<void* const> copies = {}) {
    const Chunk piece = piece_of(exchange_.rank(), index);
    if (piece.count() == 0) return;
    for (int rank = 0; rank < exchange_.size(); ++rank) {
      sources_[rank] = rank == exchange_.rank() ? call_.in + piece.begin * call_.element()
                                                : exchange_.front(rank, Lane::values, bytes(piece));
    }
    reduce(sources_, out + piece.begin * call_.element(), piece.count(), call_.dtype,
           call_.reduction, exchange_.size(), copies);
    for (int step = 1; step < exchange_.size(); ++step) {
      exchange_.release(exchange_.after(step), Lane::values);
    }
  }

  /// join(), and sends what it gives to all others: added straight into the slots.
  void join_and_send(std::int64_t index) {
    const Chunk piece = piece_of(exchange_.rank(), index);
    if (piece.count() == 0) return;
    for (int step = 1; step < exchange_.size(); ++step) {
      copies_[step - 1] = exchange_.room(exchange_.after(step), Lane::results);
    }
    join(index, call_.out, copies_);
    for (int step = 1; step < exchange_.size(); ++step) {
      exchange_.commit(exchange_.after(step), Lane::results, bytes(piece));
    }
  }

  void take_results(std::int64_t index) {
    for (int step = 1; step < exchange_.size(); ++step) {
      const int peer = exchange_.before(step);
      const Chunk piece = piece_of(peer, index);
      if (piece.count() == 0) continue;
      exchange_.take(peer, Lane::results, call_.out + piece.begin * call_.element(), bytes(piece));
    }
  }

 private:
  Chunk piece_of(int rank, std::int64_t index) const {
    return pieces_.at(chunk_of(call_.count, rank, exchange_.size()), index);
  }
  std::size_t bytes(const Chunk& piece) const {
    return static_cast<std::size_t>(piece.count() * call_.element());
  }
  void send(int peer, Lane lane, const std::byte* values, const Chunk& piece) {
    exchange_.send(peer, lane, values + piece.begin * call_.element(), bytes(piece));
  }

  Exchange& exchange_;
  const ReduceCall& call_;
  const Pieces pieces_;
  std::vector<const void*> sources_;
  std::vector<void*> copies_;
};

void all_reduce_in_one_hop(Exchange& exchange, const ReduceCall& call) {
  const auto bytes = static_cast<std::size_t>(call.count * call.element());
  for (int step = 1; step < exchange.size(); ++step) {
    exchange.send(exchange.after(step), Lane::values, call.in, bytes);
  }
  std::vector<const void*> sources(exchange.size());
  for (int rank = 0; rank < exchange.size(); ++rank) {
    sources[rank] = rank == exchange.rank() ? call.in : exchange.front(rank, Lane::values, bytes);
  }
  reduce(sources, call.out, call.count, call.dtype, call.reduction, exchange.size());
  for (int step = 1; step < exchange.size(); ++step) {
    exchange.release(exchange.after(step), Lane::values);
  }
}

bool takes_one_hop(const Exchange& exchange, const ReduceCall& call) {
  const std::int64_t most = kOneHop / std::max(1, exchange.size() - 1) / call.element();
  const auto piece = static_cast<std::int64_t>(exchange.piece_bytes()) / call.element();
  return call.count <= std::min(most, piece);
}

}  // namespace

void all_reduce_in_rank_order(Exchange& exchange, const ReduceCall& call) {
  if (call.count == 0) return;
  if (takes_one_hop(exchange, call)) return all_reduce_in_one_hop(exchange, call);
  if (all_reduce_in_place(exchange, call)) return;
  RankOrder work(exchange, call);
  const std::int64_t rounds = work.rounds();
  work.send_values(0);
  for (std::int64_t k = 0; k <= rounds; ++k) {
    work.send_values(k + 1);
    work.join_and_send(k);
    if (k > 0) work.take_results(k - 1);
  }
}

void reduce_scatter_in_rank_order(Exchange& exchange, const ReduceCall& call) {
  RankOrder work(exchange, call);
  const std::int64_t rounds = work.rounds();
  const Chunk mine = chunk_of(call.count, exchange.rank(), exchange.size());
  work.send_values(0);
  for (std::int64_t k = 0; k < rounds; ++k) {
    work.send_values(k + 1);
    work.join(k, call.out - mine.begin * call.element());
  }
}

}  // namespace convoy
