#include "comm/exchange.h"

#include <algorithm>
#include <cstring>

#include "kernels/base/error.h"

namespace convoy {
namespace {

int tag_of(Lane lane) {
  return lane == Lane::values ? Fabric::kCollectives : Fabric::kResults;
}

}  // namespace

PeerChannels::PeerChannels(Fabric& fabric) : fabric_(fabric) {
  for (int lane = 0; lane < 2; ++lane) {
    to_[lane].resize(fabric.size());
    from_[lane].resize(fabric.size());
  }
}

SendEnd& PeerChannels::to(int peer, Lane lane) {
  SendEnd*& end = to_[static_cast<int>(lane)][peer];
  if (!end) end = &fabric_.to(peer, tag_of(lane));
  return *end;
}

ReceiveEnd& PeerChannels::from(int peer, Lane lane) {
  ReceiveEnd*& end = from_[static_cast<int>(lane)][peer];
  if (!end) end = &fabric_.from(peer, tag_of(lane));
  return *end;
}

void Exchange::send(int peer, Lane lane, const void* values, std::size_t bytes) {
  std::byte* slot = room(peer, lane);
  if (bytes) std::memcpy(slot, values, bytes);
  commit(peer, lane, bytes);
}

void Exchange::commit(int peer, Lane lane, std::size_t bytes) {
  SendEnd& end = channels_.to(peer, lane);
  end.commit(bytes);
  if (std::find(used_.begin(), used_.end(), &end) == used_.end()) used_.push_back(&end);
}

const void* Exchange::front(int peer, Lane lane, std::size_t bytes) {
  const std::span<const std::byte> piece = channels_.from(peer, lane).front(waiter_);
  if (piece.size() != bytes) {
    CONVOY_FAIL(communication,
                "{}: piece of {} bytes from rank {}, {} expected: the ranks do not make the same "
                "calls with the same counts",
                what_, piece.size(), peer, bytes);
  }
  if (waiter_.board()) waiter_.board()->beat();
  return piece.data();
}

void Exchange::take(int peer, Lane lane, void* values, std::size_t bytes) {
  const void* piece = front(peer, lane, bytes);
  if (bytes) std::memcpy(values, piece, bytes);
  release(peer, lane);
}

void Exchange::flush() {
  for (SendEnd* end : used_) end->flush(waiter_);
}

}  // namespace convoy
