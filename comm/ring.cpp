// The classical ring. In step s = 0 .. n-2 rank r sends chunk r-s to the next rank and takes chunk
// r-s-1 from the one before, to which it adds its own values; it ends up with chunk r+1 whole. The
// same way round, whole chunks then go to all. Traffic of neighbours only.
#include <array>
#include <cstring>
#include <vector>

#include "comm/collectives.h"
#include "comm/reduce.h"

namespace convoy {
namespace {

class Ring {
 public:
  Ring(Exchange& exchange, const ReduceCall& call)
      : exchange_(exchange), call_(call), pieces_(Pieces::of(exchange, call)) {}

  int last_step() const { return exchange_.size() - 2; }
  Chunk chunk(int index) const {
    const int size = exchange_.size();
    return chunk_of(call_.count, (index % size + size) % size, size);
  }

  /// Chunk `sent` lies at `from`; chunk `sent` - 1, own values added, goes to `to`.
  void pass_and_add(int sent, const std::byte* from, std::byte* to, bool last) {
    const Reduction reduction =
        call_.reduction == Reduction::mean && !last ? Reduction::sum : call_.reduction;
    pass(sent, from, [&](const Chunk& piece, std::size_t offset, std::size_t bytes) {
      const std::byte* own = call_.in + piece.begin * call_.element();
      const void* values = exchange_.front(exchange_.before(1), Lane::values, bytes);
      const std::array<const void*, 2> both{values, own};
      reduce(both, to + offset, piece.count(), call_.dtype, reduction, exchange_.size());
      exchange_.release(exchange_.before(1), Lane::values);
    });
  }

  /// Chunk `sent` of `values` goes on; chunk `sent` - 1 is taken to its place there.
  void pass_on(int sent, std::byte* values) {
    std::byte* to = values + chunk(sent - 1).begin * call_.element();
    pass(sent, values + chunk(sent).begin * call_.element(),
         [&](const Chunk&, std::size_t offset, std::size_t bytes) {
           exchange_.take(exchange_.before(1), Lane::values, to + offset, bytes);
         });
  }

 private:
  /// Sends chunk `sent`, which lies at `from`, while `take` is called for pieces of the one before.
  template <class Take>
  void pass(int sent, const std::byte* from, Take&& take) {
    const Chunk out = chunk(sent);
    const Chunk in = chunk(sent - 1);
    const std::int64_t element = call_.element();
    for (std::int64_t k = 0;; ++k) {
      const Chunk going = pieces_.at(out, k);
      const Chunk coming = pieces_.at(in, k);
      if (going.count() == 0 && coming.count() == 0) return;
      if (going.count()) {
        exchange_.send(exchange_.after(1), Lane::values, from + (going.begin - out.begin) * element,
                       going.count() * element);
      }
      if (coming.count()) {
        take(coming, (coming.begin - in.begin) * element, coming.count() * element);
      }
    }
  }

  Exchange& exchange_;
  const ReduceCall& call_;
  const Pieces pieces_;
};

/// A group of one.
void copy_own(const ReduceCall& call) {
  if (call.count && call.in != call.out) {
    std::memcpy(call.out, call.in, call.count * call.element());
  }
}

}  // namespace

void all_reduce_around_ring(Exchange& exchange, const ReduceCall& call) {
  if (exchange.size() == 1) return copy_own(call);
  Ring ring(exchange, call);
  const int rank = exchange.rank();
  const auto place = [&](int chunk) { return ring.chunk(chunk).begin * call.element(); };
  for (int s = 0; s <= ring.last_step(); ++s) {
    const std::byte* from = (s == 0 ? call.in : call.out) + place(rank - s);
    ring.pass_and_add(rank - s, from, call.out + place(rank - s - 1), s == ring.last_step());
  }
  for (int s = 0; s <= ring.last_step(); ++s) ring.pass_on(rank + 1 - s, call.out);
}

void reduce_scatter_around_ring(Exchange& exchange, const ReduceCall& call) {
  if (exchange.size() == 1) return copy_own(call);
  Ring ring(exchange, call);
  // One rank later than in all_reduce, so that rank r ends up with chunk r. Sums on their way lie
  // in `partial`: a piece of the next chunk takes the place of the one that was just sent.
  std::vector<std::byte> partial((call.count / exchange.size() + 1) * call.element());
  for (int s = 0; s <= ring.last_step(); ++s) {
    const int sent = exchange.rank() - 1 - s;
    const bool last = s == ring.last_step();
    const std::byte* from =
        s == 0 ? call.in + ring.chunk(sent).begin * call.element() : partial.data();
    ring.pass_and_add(sent, from, last ? call.out : partial.data(), last);
  }
}

}  // namespace convoy
