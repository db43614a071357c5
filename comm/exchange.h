// What a collective is written with: pieces to and from the other workers of a group, on two lanes.
// The sizes of pieces follow from the arguments of the call, so a piece of another size shows that
// the ranks do not make the same calls.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "comm/channel.h"
#include "comm/waiter.h"

namespace convoy {

/// The two channels of collectives to each peer: Fabric::kCollectives and kResults.
enum class Lane { values, results };

/// Ends of the channels of a fabric's collectives, each opened on first use.
class PeerChannels {
 public:
  explicit PeerChannels(Fabric& fabric);
  Fabric& fabric() const { return fabric_; }
  SendEnd& to(int peer, Lane lane);
  ReceiveEnd& from(int peer, Lane lane);

 private:
  Fabric& fabric_;
  std::vector<SendEnd*> to_[2];
  std::vector<ReceiveEnd*> from_[2];
};

/// One call of a collective.
class Exchange {
 public:
  /// `what`: the name of the call, for errors.
  Exchange(PeerChannels& channels, Waiter& waiter, const char* what)
      : channels_(channels), waiter_(waiter), what_(what) {}

  int rank() const { return channels_.fabric().rank(); }
  int size() const { return channels_.fabric().size(); }
  std::size_t piece_bytes() const { return channels_.fabric().piece_bytes(); }
  Fabric& fabric() const { return channels_.fabric(); }
  /// The rank `step` places after this one, around the ring.
  int after(int step) const { return (rank() + step) % size(); }
  int before(int step) const { return (rank() + size() - step) % size(); }

  /// Sends one piece: at most piece_bytes().
  void send(int peer, Lane lane, const void* values, std::size_t bytes);
  /// Room for the next piece to `peer`, to be written and then sent by commit().
  std::byte* room(int peer, Lane lane) { return channels_.to(peer, lane).reserve(waiter_).data(); }
  void commit(int peer, Lane lane, std::size_t bytes);
  /// The next piece of `peer`, which has `bytes`; `communication` if it has not.
  const void* front(int peer, Lane lane, std::size_t bytes);
  void release(int peer, Lane lane) { channels_.from(peer, lane).release(); }
  /// front(), copied to `values`, and release().
  void take(int peer, Lane lane, void* values, std::size_t bytes);
  /// Returns when nothing that was sent needs this side any more.
  void flush();

 private:
  PeerChannels& channels_;
  Waiter& waiter_;
  const char* what_;
  std::vector<SendEnd*> used_;
};

}  // namespace convoy
