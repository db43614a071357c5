#include "comm/parcel_lane.h"

#include <chrono>
#include <utility>

#include "comm/clock.h"
#include "comm/waiter.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

// Of the parts of a parcel, as GPUs like copies.
constexpr std::size_t kAlignment = 256;

constexpr std::chrono::milliseconds kAbortPause(20);

std::size_t room_for(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Parcel::Parcel(const std::vector<Part>& parts, Stream& stream) {
  if (parts.empty()) return;
  std::size_t room = 0;
  for (const Part& part : parts) {
    bytes_ += part.bytes;
    room += room_for(part.bytes);
  }
  DeviceContext& device = context(stream.device());
  MemoryPool& pool = device.memory();
  block_ = std::make_shared<MemoryPool::Block>(is_gpu(stream.device())
                                                   ? pool.allocate(room, &stream)
                                                   : pool.allocate_uncounted(room, &stream));
  auto* to = static_cast<std::byte*>(block_->data());
  for (const Part& part : parts) {
    if (part.bytes > 0) device.copy(stream, to, part.data, part.bytes);
    parts_.push_back({to, part.bytes});
    to += room_for(part.bytes);
  }
  packed_ = stream.record();
}

void Parcel::open(const std::vector<Place>& places, Stream& stream) {
  if (bytes_ == 0) return;
  stream.wait(packed_);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].bytes == 0) continue;
    context(stream.device()).copy(stream, places[i].data, parts_[i].data, places[i].bytes);
  }
  block_->use_until(stream.record());
}

std::shared_ptr<std::byte> Parcel::take(std::size_t i, Stream& stream) const {
  stream.wait(packed_);
  return {block_, static_cast<std::byte*>(parts_[i].data)};
}

// Nothing wakes it when the group is aborted: it looks for that every kAbortPause.
template <class Ready>
double ParcelLane::wait(std::unique_lock<std::mutex>& lock, HostCommunicator& group, Ready ready) {
  if (ready()) return 0;
  const double begin = steady_now();
  const WaitScope waiting(group.board(), WaitIn::message);
  const std::shared_ptr<AbortFlag> abort = group.abort_flag();
  while (!changed_.wait_for(lock, kAbortPause, ready)) {
    if (abort->raised()) abort->rethrow();
  }
  return steady_now() - begin;
}

bool ParcelLane::is_full() {
  const std::lock_guard lock(mutex_);
  return messages_.size() >= slots_;
}

double ParcelLane::send(const LinkHeader& header, Parcel parcel, HostCommunicator& group) {
  const double now = steady_now();
  std::unique_lock lock(mutex_);
  const double waited = wait(lock, group, [this] { return messages_.size() < slots_; });
  messages_.push_back({header, std::move(parcel), now});
  lock.unlock();
  changed_.notify_all();
  return waited;
}

ParcelMessage ParcelLane::receive(HostCommunicator& group) {
  std::unique_lock lock(mutex_);
  wait(lock, group, [this] { return !messages_.empty(); });
  ParcelMessage message = std::move(messages_.front());
  messages_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return message;
}

const Device* ParcelLanes::device_of(int rank) const {
  const int local = rank - first_rank_;
  if (local < 0 || local >= static_cast<int>(devices_.size())) return nullptr;
  return &devices_[static_cast<std::size_t>(local)];
}

std::shared_ptr<ParcelLane> ParcelLanes::between(int from, int to, int tag) {
  const Device* const source = device_of(from);
  const Device* const target = device_of(to);
  if (!source || !target || source->type != target->type) return nullptr;
  const std::lock_guard lock(mutex_);
  std::shared_ptr<ParcelLane>& lane = lanes_[{from, to, tag}];
  if (lane) return lane;
  lane = std::make_shared<ParcelLane>(slots_);
  if (*source != *target && is_gpu(*target)) context(*target).reach(*source);
  return lane;
}

}  // namespace convoy
