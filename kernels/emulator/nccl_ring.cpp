#include "kernels/emulator/nccl_ring.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/emulator/nccl_reduce.h"
#include "kernels/emulator/nccl_transfer.h"

namespace convoy::emulator::nccl {
namespace {

constexpr std::size_t kPiece = 1 << 20;  // bytes of a chain's piece

/// A call with its bytes and places on the ring.
class Ring {
 public:
  Ring(Comm& comm, const Call& call)
      : comm_(comm),
        type_(static_cast<ncclDataType_t>(call.note.type)),
        op_(static_cast<ncclRedOp_t>(call.note.op)),
        element_(size_of(type_)),
        in_(static_cast<const std::byte*>(call.send)),
        out_(static_cast<std::byte*>(call.receive)) {}

  int rank() const { return comm_.rank(); }
  int ranks() const { return comm_.ranks(); }
  std::size_t element() const { return element_; }
  const std::byte* in(std::size_t at) const { return in_ + at * element_; }
  std::byte* out(std::size_t at) const { return out_ + at * element_; }
  int wrapped(int number) const { return ((number % ranks()) + ranks()) % ranks(); }

  void bring(std::size_t at, std::size_t count, std::byte* to) const {
    bring_in(type_, op_, ranks(), in(at), to, count);
  }
  void add(const std::byte* partial, const std::byte* own, std::byte* to, std::size_t count) const {
    combine(type_, op_, partial, own, to, count);
  }
  void finish_sum(std::byte* values, std::size_t count) const {
    finish(type_, op_, ranks(), values, count);
  }

  /// One step: `count` elements to `to` and others from `from`, side by side. Either may be -1.
  void pass(int to, const void* sent, std::size_t send_count, int from, void* received,
            std::size_t receive_count) {
    std::vector<Transfer> transfers;
    if (to >= 0) transfers.push_back(Transfer::to(comm_, to, sent, send_count * element_));
    if (from >= 0) {
      transfers.push_back(Transfer::from(comm_, from, received, receive_count * element_));
    }
    const auto look = [&] {
      bool moved = false, done = true;
      for (Transfer& transfer : transfers) {
        moved |= transfer.move();
        done &= transfer.done();
      }
      return done ? Found::all : moved ? Found::progress : Found::nothing;
    };
    comm_.wait(look, [&]() -> std::optional<Trouble> {
      for (int peer : {to, from}) {
        if (peer < 0) continue;
        if (const auto trouble = comm_.trouble_with(peer)) return trouble;
      }
      return std::nullopt;
    });
  }
  void pass_on(const void* sent, std::size_t send_count, void* received,
               std::size_t receive_count) {
    pass(wrapped(rank() + 1), sent, send_count, wrapped(rank() - 1), received, receive_count);
  }

 private:
  Comm& comm_;
  ncclDataType_t type_;
  ncclRedOp_t op_;
  std::size_t element_;
  const std::byte* in_;
  std::byte* out_;
};

/// Elements begin[i]..begin[i + 1] - 1 are part i of the ring.
std::vector<std::size_t> parts_of(std::size_t count, int ranks) {
  std::vector<std::size_t> begins;
  for (int i = 0; i <= ranks; ++i) {
    const auto part = static_cast<std::size_t>(i), all = static_cast<std::size_t>(ranks);
    begins.push_back(count / all * part + std::min(part, count % all));
  }
  return begins;
}

/// The sum of part `last` of the values, which this rank has in the end; each part starts where
/// its turn comes first.
std::vector<std::byte> sum_around(Ring& ring, const std::vector<std::size_t>& begins, int last) {
  const auto size = [&](int part) {
    const auto i = static_cast<std::size_t>(part);
    return begins[i + 1] - begins[i];
  };
  std::size_t longest = 0;
  for (int i = 0; i < ring.ranks(); ++i) longest = std::max(longest, size(i));
  std::vector<std::byte> partial(longest * ring.element()), received(partial.size()),
      own(partial.size());
  int part = ring.wrapped(last - 1);
  ring.bring(begins[static_cast<std::size_t>(part)], size(part), partial.data());
  for (int step = 1; step < ring.ranks(); ++step) {
    const int next = ring.wrapped(part - 1);
    ring.pass_on(partial.data(), size(part), received.data(), size(next));
    ring.bring(begins[static_cast<std::size_t>(next)], size(next), own.data());
    ring.add(received.data(), own.data(), partial.data(), size(next));
    part = next;
  }
  ring.finish_sum(partial.data(), size(part));
  return partial;
}

/// Every rank has part `first` of the output, and gets the others.
void gather_around(Ring& ring, const std::vector<std::size_t>& begins, int first) {
  int part = first;
  for (int step = 1; step < ring.ranks(); ++step) {
    const int next = ring.wrapped(part - 1);
    const auto a = static_cast<std::size_t>(part), b = static_cast<std::size_t>(next);
    ring.pass_on(ring.out(begins[a]), begins[a + 1] - begins[a], ring.out(begins[b]),
                 begins[b + 1] - begins[b]);
    part = next;
  }
}

/// Calls work(begin, count) for pieces of a chain, so that its ranks work at the same time.
template <class Work>
void in_pieces(const Ring& ring, std::size_t count, Work&& work) {
  const std::size_t piece = kPiece / ring.element();
  for (std::size_t begin = 0; begin < count; begin += piece) {
    work(begin, std::min(piece, count - begin));
  }
}

}  // namespace

void all_reduce(Comm& comm, const Call& call) {
  Ring ring(comm, call);
  const auto begins = parts_of(call.note.count, ring.ranks());
  const int mine = ring.wrapped(ring.rank() + 1 + comm.memory().header().seed);
  const std::vector<std::byte> sum = sum_around(ring, begins, mine);
  const auto i = static_cast<std::size_t>(mine);
  if (call.note.count > 0) {
    std::memcpy(ring.out(begins[i]), sum.data(), (begins[i + 1] - begins[i]) * ring.element());
  }
  gather_around(ring, begins, mine);
}

void reduce_scatter(Comm& comm, const Call& call) {
  Ring ring(comm, call);
  std::vector<std::size_t> begins;
  for (int i = 0; i <= ring.ranks(); ++i) {
    begins.push_back(call.note.count * static_cast<std::size_t>(i));
  }
  const std::vector<std::byte> sum = sum_around(ring, begins, ring.rank());
  if (!sum.empty()) std::memcpy(ring.out(0), sum.data(), sum.size());
}

void all_gather(Comm& comm, const Call& call) {
  Ring ring(comm, call);
  std::vector<std::size_t> begins;
  for (int i = 0; i <= ring.ranks(); ++i) {
    begins.push_back(call.note.count * static_cast<std::size_t>(i));
  }
  std::byte* own = ring.out(begins[static_cast<std::size_t>(ring.rank())]);
  if (own != ring.in(0) && call.note.count > 0) {
    std::memcpy(own, ring.in(0), call.note.count * ring.element());
  }
  gather_around(ring, begins, ring.rank());
}

// From the root along the ring to the rank before it.
void broadcast(Comm& comm, const Call& call) {
  Ring ring(comm, call);
  const int place = ring.wrapped(ring.rank() - call.note.peer);
  const int from = place == 0 ? -1 : ring.wrapped(ring.rank() - 1);
  const int to = place == ring.ranks() - 1 ? -1 : ring.wrapped(ring.rank() + 1);
  if (place == 0 && call.receive != call.send && call.note.count > 0) {
    std::memcpy(ring.out(0), ring.in(0), call.note.count * ring.element());
  }
  in_pieces(ring, call.note.count, [&](std::size_t begin, std::size_t count) {
    std::byte* piece = ring.out(begin);
    if (from >= 0) ring.pass(-1, nullptr, 0, from, piece, count);
    if (to >= 0) ring.pass(to, piece, count, -1, nullptr, 0);
  });
}

// From the rank after the root along the ring to the root.
void reduce(Comm& comm, const Call& call) {
  Ring ring(comm, call);
  const int place = ring.wrapped(ring.rank() - call.note.peer - 1);
  const bool is_root = ring.rank() == call.note.peer;
  const int from = place == 0 ? -1 : ring.wrapped(ring.rank() - 1);
  std::vector<std::byte> partial(kPiece), own(kPiece);
  in_pieces(ring, call.note.count, [&](std::size_t begin, std::size_t count) {
    ring.bring(begin, count, own.data());
    if (from >= 0) {
      ring.pass(-1, nullptr, 0, from, partial.data(), count);
      ring.add(partial.data(), own.data(), own.data(), count);
    }
    if (!is_root)
      return ring.pass(ring.wrapped(ring.rank() + 1), own.data(), count, -1, nullptr, 0);
    ring.finish_sum(own.data(), count);
    std::memcpy(ring.out(begin), own.data(), count * ring.element());
  });
}

}  // namespace convoy::emulator::nccl
