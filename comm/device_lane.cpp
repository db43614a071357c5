#include "comm/device_lane.h"

#include <utility>

#include "kernels/base/error.h"

namespace convoy {
namespace {

// Of the parts of a parcel, as GPUs like copies.
constexpr std::size_t kAlignment = 256;

std::size_t room_for(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

DeviceParcel::DeviceParcel(const std::vector<Part>& parts, Stream& stream) {
  DeviceContext& gpu = context(stream.device());
  std::size_t room = 0;
  for (const Part& part : parts) {
    bytes_ += part.bytes;
    room += room_for(part.bytes);
  }
  if (bytes_ == 0) return;
  block_ = gpu.memory().allocate(room, &stream);
  auto* to = static_cast<std::byte*>(block_.data());
  for (const Part& part : parts) {
    gpu.copy(stream, to, part.data, part.bytes);
    to += room_for(part.bytes);
  }
  packed_ = stream.record();
}

void DeviceParcel::open(const std::vector<Place>& places, Stream& stream) {
  if (bytes_ == 0) return;
  stream.wait(packed_);
  const auto* from = static_cast<const std::byte*>(block_.data());
  for (const Place& place : places) {
    context(stream.device()).copy(stream, place.data, from, place.bytes);
    from += room_for(place.bytes);
  }
  block_.use_until(stream.record());
}

void DeviceLane::put(DeviceParcel parcel) {
  const std::lock_guard lock(mutex_);
  parcels_.push_back(std::move(parcel));
}

DeviceParcel DeviceLane::take() {
  const std::lock_guard lock(mutex_);
  CONVOY_DCHECK(!parcels_.empty(), "device lane: no parcel is there");
  DeviceParcel parcel = std::move(parcels_.front());
  parcels_.pop_front();
  return parcel;
}

const Device* DeviceLanes::gpu_of(int rank) const {
  const int local = rank - first_rank_;
  if (local < 0 || local >= static_cast<int>(devices_.size())) return nullptr;
  const Device& device = devices_[static_cast<std::size_t>(local)];
  return is_gpu(device) ? &device : nullptr;
}

std::shared_ptr<DeviceLane> DeviceLanes::between(int from, int to, int tag) {
  const Device* const source = gpu_of(from);
  const Device* const target = gpu_of(to);
  if (!source || !target || source->type != target->type) return nullptr;
  const std::lock_guard lock(mutex_);
  std::shared_ptr<DeviceLane>& lane = lanes_[{from, to, tag}];
  if (lane) return lane;
  lane = std::make_shared<DeviceLane>();
  if (*source != *target) context(*target).reach(*source);
  return lane;
}

}  // namespace convoy
