#include "comm/channel_communicator.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "comm/check_arguments.h"
#include "comm/host_memory.h"
#include "comm/message.h"
#include "comm/sub_fabric.h"

namespace convoy {
namespace {

/// One collective at a time: two at once would mix their pieces.
class BusyScope {
 public:
  BusyScope(std::atomic<bool>& busy, const char* what) : busy_(busy) {
    CONVOY_CHECK(!busy_.exchange(true),
                 "{}: another collective of this communicator is in work; streams that run "
                 "collectives side by side need a communicator each, from split()",
                 what);
  }
  ~BusyScope() { busy_.store(false); }
  BusyScope(const BusyScope&) = delete;
  BusyScope& operator=(const BusyScope&) = delete;

 private:
  std::atomic<bool>& busy_;
};

std::vector<int> all_ranks(const Fabric& fabric) {
  std::vector<int> ranks(fabric.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// What each rank says in a split.
struct Bid {
  int color;
  int key;
  int next_group;
};

/// Ranks that bid `color`, by key, then by rank.
std::vector<int> ranks_of(int color, const std::vector<Bid>& bids) {
  std::vector<int> ranks;
  for (int r = 0; r < static_cast<int>(bids.size()); ++r) {
    if (bids[r].color == color) ranks.push_back(r);
  }
  std::stable_sort(ranks.begin(), ranks.end(),
                   [&](int a, int b) { return bids[a].key < bids[b].key; });
  return ranks;
}

}  // namespace

ChannelCommunicator::ChannelCommunicator(std::shared_ptr<Fabric> fabric,
                                         std::shared_ptr<AbortFlag> abort,
                                         const ChannelOptions& options)
    : ChannelCommunicator(std::make_shared<Whole>(), fabric, all_ranks(*fabric), std::move(abort),
                          options) {
  whole_->fabric = std::move(fabric);
}

ChannelCommunicator::ChannelCommunicator(std::shared_ptr<Whole> whole,
                                         std::shared_ptr<Fabric> fabric, std::vector<int> members,
                                         std::shared_ptr<AbortFlag> abort,
                                         const ChannelOptions& options)
    : whole_(std::move(whole)),
      fabric_(std::move(fabric)),
      members_(std::move(members)),
      abort_(std::move(abort)),
      options_(options),
      channels_(*fabric_) {}

template <class Work>
void ChannelCommunicator::collective(WaitIn kind, const char* what, Work&& work) {
  if (abort_->raised()) abort_->rethrow();
  const BusyScope busy(busy_, what);
  const WaitScope wait(options_.board, kind);
  Waiter waiter(abort_, options_.board, options_.spins);
  Exchange exchange(channels_, waiter, what);
  try {
    work(exchange);
    exchange.flush();
  } catch (...) {
    // The others are in the middle of it and would wait for ever.
    abort_->raise(to_error(std::current_exception()));
    throw;
  }
}

void ChannelCommunicator::all_reduce_now(const void* in, void* out, std::int64_t count, DType dtype,
                                         Reduction reduction) {
  check_values("all_reduce", in, count);
  check_values("all_reduce", out, count);
  check_reduction("all_reduce", dtype, reduction);
  const ReduceCall call{static_cast<const std::byte*>(in), static_cast<std::byte*>(out), count,
                        dtype, reduction};
  check_apart("all_reduce", in, count * call.element(), out, count * call.element());
  collective(WaitIn::reduce, "all_reduce",
             [&](Exchange& exchange) { convoy::all_reduce(exchange, call, options_.order); });
}

void ChannelCommunicator::reduce_scatter_now(const void* in, void* out, std::int64_t count,
                                             DType dtype, Reduction reduction) {
  check_values("reduce_scatter", in, count);
  const Chunk mine = chunk_of(count, rank(), size());
  check_values("reduce_scatter", out, mine.count());
  check_reduction("reduce_scatter", dtype, reduction);
  const ReduceCall call{static_cast<const std::byte*>(in), static_cast<std::byte*>(out), count,
                        dtype, reduction};
  const std::byte* own = call.in + mine.begin * call.element();
  if (out != own) {
    CONVOY_CHECK(in != out || mine.count() == 0,
                 "reduce_scatter: output is the start of the input, expected this rank's chunk of "
                 "it or another buffer");
    check_apart("reduce_scatter", in, count * call.element(), out, mine.count() * call.element());
  }
  collective(WaitIn::reduce, "reduce_scatter",
             [&](Exchange& exchange) { convoy::reduce_scatter(exchange, call, options_.order); });
}

void ChannelCommunicator::all_gather_now(const void* in, void* out, std::size_t bytes) {
  check_values("all_gather", in, static_cast<std::int64_t>(bytes));
  check_values("all_gather", out, static_cast<std::int64_t>(bytes));
  collective(WaitIn::gather, "all_gather",
             [&](Exchange& exchange) { convoy::all_gather(exchange, in, out, bytes); });
}

void ChannelCommunicator::broadcast_now(void* values, std::size_t bytes, int root) {
  check_values("broadcast", values, static_cast<std::int64_t>(bytes));
  check_root("broadcast", root, *this);
  collective(WaitIn::broadcast, "broadcast",
             [&](Exchange& exchange) { convoy::broadcast(exchange, values, bytes, root); });
}

void ChannelCommunicator::send_on(Waiter& waiter, const void* values, std::size_t bytes, int peer,
                                  int tag) {
  check_values("send", values, static_cast<std::int64_t>(bytes));
  check_peer("send", peer, tag, *this);
  if (abort_->raised()) abort_->rethrow();
  send_message(fabric_->to(peer, tag), waiter, values, bytes);
}

void ChannelCommunicator::receive_on(Waiter& waiter, void* values, std::size_t bytes, int peer,
                                     int tag) {
  check_values("receive", values, static_cast<std::int64_t>(bytes));
  check_peer("receive", peer, tag, *this);
  if (abort_->raised()) abort_->rethrow();
  const std::size_t got = receive_message(fabric_->from(peer, tag), waiter, values, bytes);
  if (got == bytes) return;
  CONVOY_FAIL(communication, "receive: message of {} bytes from rank {} with tag {}, {} expected",
              got, peer, tag, bytes);
}

void ChannelCommunicator::send_now(const void* values, std::size_t bytes, int peer, int tag) {
  const WaitScope wait(options_.board, WaitIn::message);
  Waiter waiter(abort_, options_.board, options_.spins);
  send_on(waiter, values, bytes, peer, tag);
}

void ChannelCommunicator::receive_now(void* values, std::size_t bytes, int peer, int tag) {
  const WaitScope wait(options_.board, WaitIn::message);
  Waiter waiter(abort_, options_.board, options_.spins);
  receive_on(waiter, values, bytes, peer, tag);
}

void ChannelCommunicator::send_aside(const void* values, std::size_t bytes, int peer, int tag,
                                     const SideWait& wait) {
  Waiter waiter(abort_, options_.board, wait);
  send_on(waiter, values, bytes, peer, tag);
}

void ChannelCommunicator::receive_aside(void* values, std::size_t bytes, int peer, int tag,
                                        const SideWait& wait) {
  Waiter waiter(abort_, options_.board, wait);
  receive_on(waiter, values, bytes, peer, tag);
}

std::shared_ptr<std::byte> ChannelCommunicator::make_memory(std::size_t bytes) {
  bool shared = false;
  for (int peer = 0; peer < size(); ++peer) {
    shared |= peer != rank() && fabric_->shares_memory(peer);
  }
  if (!shared || options_.order != ReduceOrder::ranks) return nullptr;
  return fabric_->memory().make(bytes);
}

void ChannelCommunicator::barrier() {
  collective(WaitIn::barrier, "barrier", [](Exchange& exchange) { convoy::barrier(exchange); });
}

std::unique_ptr<HostCommunicator> ChannelCommunicator::split_host(int color, int key) {
  const Bid bid{color, key, whole_->next_group.load()};
  std::vector<Bid> bids(size());
  all_gather_now(&bid, bids.data(), sizeof bid);
  int group = 0;
  for (const Bid& other : bids) group = std::max(group, other.next_group);
  // Above all that any of them has used: no two of the new members meet in another group of it.
  whole_->next_group.store(group + 1);
  if (color < 0) return nullptr;
  std::vector<int> members = ranks_of(color, bids);
  for (int& member : members) member = members_[member];
  auto fabric = std::make_shared<SubFabric>(whole_->fabric, members, group);
  return std::unique_ptr<HostCommunicator>(
      new ChannelCommunicator(whole_, std::move(fabric), std::move(members), abort_, options_));
}

}  // namespace convoy
