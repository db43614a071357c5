// Bytes on their way between two ranks, a piece at a time as the channel has room.
#pragma once

#include <cstddef>
#include <initializer_list>

#include "kernels/emulator/nccl_comm.h"

namespace convoy::emulator::nccl {

class Transfer {
 public:
  static Transfer to(Comm& comm, int peer, const void* data, std::size_t bytes);
  static Transfer from(Comm& comm, int peer, void* data, std::size_t bytes);

  /// Moves what can be moved now; whether anything was.
  bool move();
  /// All has been put into the channel, or taken out of it.
  bool done() const { return done_ == bytes_; }
  /// The peer has taken all that was sent.
  bool taken() const { return channel_->produced.load() == channel_->consumed.load(); }

 private:
  Transfer(Channel& channel, RankRecord& peer, bool sends, std::byte* data, std::size_t bytes)
      : channel_(&channel), peer_(&peer), sends_(sends), data_(data), bytes_(bytes) {}
  void copy(std::uint64_t at, std::size_t bytes);

  Channel* channel_;
  RankRecord* peer_;
  bool sends_;
  std::byte* data_;
  std::size_t bytes_;
  std::size_t done_ = 0;
};

}  // namespace convoy::emulator::nccl
