#include "kernels/emulator/nccl_transfer.h"

#include <algorithm>
#include <cstring>

namespace convoy::emulator::nccl {

Transfer Transfer::to(Comm& comm, int peer, const void* data, std::size_t bytes) {
  auto* source = static_cast<std::byte*>(const_cast<void*>(data));  // only read
  return {comm.memory().channel(comm.rank(), peer), comm.memory().record(peer), true, source,
          bytes};
}

Transfer Transfer::from(Comm& comm, int peer, void* data, std::size_t bytes) {
  return {comm.memory().channel(peer, comm.rank()), comm.memory().record(peer), false,
          static_cast<std::byte*>(data), bytes};
}

bool Transfer::move() {
  if (done()) return false;
  const std::uint64_t produced = channel_->produced.load(std::memory_order_acquire);
  const std::uint64_t consumed = channel_->consumed.load(std::memory_order_acquire);
  const std::size_t room = sends_ ? kChannelBytes - (produced - consumed) : produced - consumed;
  const std::size_t bytes = std::min(room, bytes_ - done_);
  if (bytes == 0) return false;
  std::atomic<std::uint64_t>& mine = sends_ ? channel_->produced : channel_->consumed;
  copy(sends_ ? produced : consumed, bytes);
  done_ += bytes;
  mine.fetch_add(bytes, std::memory_order_release);
  ring(*peer_);
  return true;
}

// The channel is a ring: the bytes may lie in two parts.
void Transfer::copy(std::uint64_t at, std::size_t bytes) {
  while (bytes > 0) {
    const std::size_t place = at % kChannelBytes;
    const std::size_t part = std::min(bytes, kChannelBytes - place);
    std::byte* in_channel = channel_->data + place;
    sends_ ? std::memcpy(in_channel, data_, part) : std::memcpy(data_, in_channel, part);
    data_ += part;
    at += part;
    bytes -= part;
  }
}

}  // namespace convoy::emulator::nccl
