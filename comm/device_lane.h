// Messages between workers of one process that have GPUs of one kind: the values never leave the
// memories of the GPUs, and two workers may share one, which NCCL refuses.
//
//     sender's stream: copy | parcel, on its GPU | lane | copy, on another GPU or the same:
//     receiver's
//
// Order, waits and failures are those of the link beside the lane, which says that a parcel is
// there.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "kernels/base/buffer.h"
#include "kernels/base/context.h"

namespace convoy {

/// Values that were set aside on a GPU. Move-only.
class DeviceParcel {
 public:
  struct Part {
    const void* data = nullptr;
    std::size_t bytes = 0;
  };
  struct Place {
    void* data = nullptr;
    std::size_t bytes = 0;
  };

  DeviceParcel() = default;
  /// Queues copies of `parts` on `stream`, whose device they are on. Work that is queued there
  /// later may write or free them.
  DeviceParcel(const std::vector<Part>& parts, Stream& stream);
  /// Of all parts.
  std::size_t bytes() const { return bytes_; }
  /// Queues copies to `places` on `stream`, whose device they are on: the same GPU or another one
  /// of its kind. As many as there are parts, each as long.
  void open(const std::vector<Place>& places, Stream& stream);

 private:
  MemoryPool::Block block_;
  std::size_t bytes_ = 0;
  Event packed_;
};

/// Parcels on their way from one worker to another, oldest first. Thread-safe.
class DeviceLane {
 public:
  void put(DeviceParcel parcel);
  /// The oldest one, which must be there.
  DeviceParcel take();

 private:
  std::mutex mutex_;
  std::deque<DeviceParcel> parcels_;
};

/// The lanes between the workers of a process. Thread-safe; outlives what is in them.
class DeviceLanes {
 public:
  /// `devices`: those of the ranks from `first_rank` on.
  DeviceLanes(int first_rank, std::vector<Device> devices)
      : first_rank_(first_rank), devices_(std::move(devices)) {}

  /// The lane of the messages of `tag`, the same one for both ends; null unless both ranks are of
  /// this process and have GPUs of one kind.
  std::shared_ptr<DeviceLane> between(int from, int to, int tag);

 private:
  const Device* gpu_of(int rank) const;

  const int first_rank_;
  const std::vector<Device> devices_;
  std::mutex mutex_;
  std::map<std::tuple<int, int, int>, std::shared_ptr<DeviceLane>> lanes_;
};

}  // namespace convoy
