// Sums in rank order without slots in between, where all ranks reach each other's memory: everybody
// adds its chunk from where the values of all lie, and the others fetch it from where it puts it.
//
//   values      where in and out lie -->                          all is read -->
//   results                         piece 0 stands, piece 1 stands ... -->
#include <cstring>
#include <memory>
#include <vector>

#include "comm/collectives.h"
#include "comm/host_memory.h"
#include "comm/reduce.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

// Bytes: a second-level cache holds what two ranks have of it, and words about pieces are few.
constexpr std::int64_t kLargestPiece = 512 * 1024;

/// What a rank tells all others first.
struct Places {
  bool reachable = false;  // for all of them
  HostAddress in, out;
};

Places places_of(Exchange& exchange, const ReduceCall& call) {
  const auto bytes = static_cast<std::size_t>(call.count * call.element());
  for (int step = 1; step < exchange.size(); ++step) {
    if (!exchange.fabric().shares_memory(exchange.after(step))) return {};
  }
  const HostMemory& memory = exchange.fabric().memory();
  const auto in = memory.find(call.in, bytes);
  const auto out = memory.find(call.out, bytes);
  return in && out ? Places{true, *in, *out} : Places{};
}

/// Of all ranks, this one's too.
std::vector<Places> meet(Exchange& exchange, const ReduceCall& call) {
  std::vector<Places> all(exchange.size());
  all[exchange.rank()] = places_of(exchange, call);
  for (int step = 1; step < exchange.size(); ++step) {
    exchange.send(exchange.after(step), Lane::values, &all[exchange.rank()], sizeof(Places));
  }
  for (int step = 1; step < exchange.size(); ++step) {
    const int peer = exchange.before(step);
    exchange.take(peer, Lane::values, &all[peer], sizeof(Places));
  }
  return all;
}

std::shared_ptr<const std::byte> opened(Exchange& exchange, int peer, const HostAddress& address) {
  auto values = exchange.fabric().memory().open(address);
  if (values) return values;
  CONVOY_FAIL(communication,
              "all_reduce: rank {} (pid {}) does not let this one open its shared memory", peer,
              address.memory.pid);
}

class InPlace {
 public:
  InPlace(Exchange& exchange, const ReduceCall& call, const std::vector<Places>& places)
      : exchange_(exchange),
        call_(call),
        pieces_(Pieces::at_most(kLargestPiece, exchange, call)),
        in_(exchange.size()),
        out_(exchange.size()),
        sources_(exchange.size()) {
    for (int step = 1; step < exchange.size(); ++step) {
      const int peer = exchange.after(step);
      in_[peer] = opened(exchange, peer, places[peer].in);
      out_[peer] = opened(exchange, peer, places[peer].out);
    }
  }

  void run() {
    const std::int64_t rounds = Pieces::longest(call_.count, exchange_.size(), pieces_.elements);
    for (std::int64_t k = 0; k <= rounds; ++k) {
      add(k);
      if (k > 0) fetch(k - 1);
    }
    // This rank's values may change again when nobody reads them any more.
    for (int step = 1; step < exchange_.size(); ++step) {
      exchange_.send(exchange_.after(step), Lane::values, nullptr, 0);
    }
    for (int step = 1; step < exchange_.size(); ++step) {
      exchange_.take(exchange_.before(step), Lane::values, nullptr, 0);
    }
  }

 private:
  Chunk piece_of(int rank, std::int64_t index) const {
    return pieces_.at(chunk_of(call_.count, rank, exchange_.size()), index);
  }

  /// Piece `index` of this rank's chunk: of no use as input to anybody else.
  void add(std::int64_t index) {
    const Chunk piece = piece_of(exchange_.rank(), index);
    if (piece.count() == 0) return;
    const std::int64_t begin = piece.begin * call_.element();
    for (int rank = 0; rank < exchange_.size(); ++rank) {
      sources_[rank] = (rank == exchange_.rank() ? call_.in : in_[rank].get()) + begin;
    }
    reduce(sources_, call_.out + begin, piece.count(), call_.dtype, call_.reduction,
           exchange_.size());
    for (int step = 1; step < exchange_.size(); ++step) {
      exchange_.send(exchange_.after(step), Lane::results, nullptr, 0);
    }
  }

  /// What the others have added. Where it goes here they have read before.
  void fetch(std::int64_t index) {
    for (int step = 1; step < exchange_.size(); ++step) {
      const int peer = exchange_.before(step);
      const Chunk piece = piece_of(peer, index);
      if (piece.count() == 0) continue;
      const std::int64_t begin = piece.begin * call_.element();
      exchange_.front(peer, Lane::results, 0);
      std::memcpy(call_.out + begin, out_[peer].get() + begin,
                  static_cast<std::size_t>(piece.count() * call_.element()));
      exchange_.release(peer, Lane::results);
    }
  }

  Exchange& exchange_;
  const ReduceCall& call_;
  const Pieces pieces_;
  std::vector<std::shared_ptr<const std::byte>> in_, out_;  // of the others
  std::vector<const void*> sources_;
};

}  // namespace

bool all_reduce_in_place(Exchange& exchange, const ReduceCall& call) {
  const std::vector<Places> places = meet(exchange, call);
  for (const Places& place : places) {
    if (!place.reachable) return false;
  }
  InPlace(exchange, call, places).run();
  return true;
}

}  // namespace convoy
