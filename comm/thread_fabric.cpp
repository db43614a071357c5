#include "comm/thread_fabric.h"

#include <compare>
#include <map>
#include <mutex>
#include <new>

#include "comm/host_memory.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

/// Memory on a cache line that nothing has touched yet.
class RingMemory {
 public:
  explicit RingMemory(std::size_t bytes) : data_(::operator new(bytes, kAlignment)) {}
  ~RingMemory() { ::operator delete(data_, kAlignment); }
  RingMemory(const RingMemory&) = delete;
  RingMemory& operator=(const RingMemory&) = delete;
  void* data() const { return data_; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  void* data_;
};

struct ThreadChannel {
  explicit ThreadChannel(const RingShape& shape)
      : memory(MemoryRing::bytes(shape)),
        send(*MemoryRing::make(memory.data(), shape)),
        receive(*MemoryRing::at(memory.data())) {}

  RingMemory memory;
  RingSendEnd send;
  RingReceiveEnd receive;
};

struct Route {
  int from;
  int to;
  int tag;
  auto operator<=>(const Route&) const = default;
};

/// All channels of a group; opened by whichever side comes first.
class Hub {
 public:
  explicit Hub(const RingShape& shape) : shape_(shape) {}
  const RingShape& shape() const { return shape_; }
  HostMemory& memory() { return memory_; }
  ThreadChannel& open(const Route& route) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto& channel = channels_[route];
    if (!channel) channel = std::make_unique<ThreadChannel>(shape_);
    return *channel;
  }

 private:
  const RingShape shape_;
  HostMemory memory_;
  std::mutex mutex_;
  std::map<Route, std::unique_ptr<ThreadChannel>> channels_;
};

class ThreadFabric final : public Fabric {
 public:
  ThreadFabric(std::shared_ptr<Hub> hub, int rank, int size)
      : hub_(std::move(hub)), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* name() const override { return "thread"; }
  std::size_t piece_bytes() const override { return hub_->shape().slot_bytes; }
  SendEnd& to(int peer, int tag) override { return hub_->open({rank_, peer, tag}).send; }
  ReceiveEnd& from(int peer, int tag) override { return hub_->open({peer, rank_, tag}).receive; }
  bool shares_memory(int) const override { return true; }
  HostMemory& memory() override { return hub_->memory(); }

 private:
  std::shared_ptr<Hub> hub_;
  int rank_;
  int size_;
};

}  // namespace

std::vector<std::unique_ptr<Fabric>> make_thread_fabrics(int n, const RingShape& shape) {
  CONVOY_CHECK(n >= 1, "thread fabric: {} workers, expected at least 1", n);
  auto hub = std::make_shared<Hub>(shape);
  std::vector<std::unique_ptr<Fabric>> fabrics;
  for (int rank = 0; rank < n; ++rank) {
    fabrics.push_back(std::make_unique<ThreadFabric>(hub, rank, n));
  }
  return fabrics;
}

}  // namespace convoy
