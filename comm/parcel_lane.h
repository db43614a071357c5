// Messages between workers of one process whose devices are of one kind. The workers copy the
// values themselves, and no thread stands between them. Values of GPUs never leave the memories of
// the GPUs, and two workers may share one, which NCCL refuses.
//
//     sender's stream: copy | parcel | lane | receiver's stream: uses it, or on a GPU copies it
//
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "comm/host_communicator.h"
#include "comm/link_header.h"
#include "kernels/base/buffer.h"
#include "kernels/base/context.h"

namespace convoy {

/// Values that were set aside, in memory of the sender's device. Move-only.
class Parcel {
 public:
  struct Part {
    const void* data = nullptr;
    std::size_t bytes = 0;
  };
  struct Place {
    void* data = nullptr;
    std::size_t bytes = 0;
  };

  Parcel() = default;
  /// Queues copies of `parts` on `stream`, whose device they are on. Work that is queued there
  /// later may write or free them. What a host's parcel holds counts in no pool.
  Parcel(const std::vector<Part>& parts, Stream& stream);
  /// Of all parts.
  std::size_t bytes() const { return bytes_; }
  /// Queues copies to `places` on `stream`, whose device they are on: the same one or another of
  /// its kind. As many as there are parts, each as long.
  void open(const std::vector<Place>& places, Stream& stream);
  /// Of a host's parcel: part `i` where it lies, for work that is queued on `stream` from now on
  /// and over when the last one lets go of it.
  std::shared_ptr<std::byte> take(std::size_t i, Stream& stream) const;
  std::size_t part_bytes(std::size_t i) const { return parts_[i].bytes; }

 private:
  std::shared_ptr<MemoryPool::Block> block_;
  std::vector<Place> parts_;  // in the block
  std::size_t bytes_ = 0;
  Event packed_;
};

struct ParcelMessage {
  LinkHeader header;
  Parcel parcel;
  double sent_at = 0;  ///< steady clock: when send() was called
};

/// Messages on their way from one worker to another, oldest first. Thread-safe: a thread at each
/// end.
class ParcelLane {
 public:
  /// `slots`: messages that it holds, at least 1.
  explicit ParcelLane(int slots) : slots_(static_cast<std::size_t>(slots)) {}

  /// Whether send() would wait: all slots are taken.
  bool is_full();
  /// Waits for a free slot and returns the seconds of that. `group`: the sender's end of the group;
  /// the error of its abort ends the wait.
  double send(const LinkHeader& header, Parcel parcel, HostCommunicator& group);
  /// The oldest message; waits for it, like send().
  ParcelMessage receive(HostCommunicator& group);

 private:
  template <class Ready>
  double wait(std::unique_lock<std::mutex>& lock, HostCommunicator& group, Ready ready);

  const std::size_t slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ParcelMessage> messages_;
};

/// The lanes between the workers of a process. Thread-safe; outlives what is in them.
class ParcelLanes {
 public:
  /// `devices`: those of the ranks from `first_rank` on. `slots`: of each lane.
  ParcelLanes(int first_rank, std::vector<Device> devices, int slots)
      : first_rank_(first_rank), devices_(std::move(devices)), slots_(slots) {}

  /// The lane of the messages of `tag`, the same one for both ends; null unless both ranks are of
  /// this process and have devices of one kind.
  std::shared_ptr<ParcelLane> between(int from, int to, int tag);

 private:
  const Device* device_of(int rank) const;

  const int first_rank_;
  const std::vector<Device> devices_;
  const int slots_;
  std::mutex mutex_;
  std::map<std::tuple<int, int, int>, std::shared_ptr<ParcelLane>> lanes_;
};

}  // namespace convoy
