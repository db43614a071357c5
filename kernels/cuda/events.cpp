#include "kernels/cuda/events.h"

#include "kernels/cuda/check.h"

namespace convoy::CONVOY_GPU {

EventPool::~EventPool() {
  for (cudaEvent_t event : free_) cudaEventDestroy(event);
}

cudaEvent_t EventPool::take() {
  {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      cudaEvent_t event = free_.back();
      free_.pop_back();
      return event;
    }
  }
  cudaEvent_t event = nullptr;
  check(cudaSetDevice(ordinal_));
  check(cudaEventCreateWithFlags(&event, timed_ ? cudaEventDefault : cudaEventDisableTiming));
  return event;
}

void EventPool::give_back(cudaEvent_t event) {
  std::lock_guard lock(mutex_);
  free_.push_back(event);
}

GpuEvent::GpuEvent(std::shared_ptr<EventPool> pool, cudaStream_t stream, bool captured)
    : pool_(std::move(pool)), event_(pool_->take()), captured_(captured), reached_(captured) {
  const cudaError_t result = cudaEventRecord(event_, stream);
  if (result == cudaSuccess) return;
  pool_->give_back(event_);
  check(result);
}

GpuEvent::~GpuEvent() {
  pool_->give_back(event_);
}

bool GpuEvent::done() const {
  if (reached_.load(std::memory_order_acquire)) return true;
  const cudaError_t result = cudaEventQuery(event_);
  // Host functions of a stream may not ask: whoever does gets his answer later.
  if (result == cudaErrorNotReady || result == cudaErrorNotPermitted) return false;
  reached_.store(true, std::memory_order_release);
  return true;
}

void GpuEvent::wait() const {
  if (reached_.load(std::memory_order_acquire)) return;
  if (cudaEventSynchronize(event_) != cudaErrorNotPermitted) {
    reached_.store(true, std::memory_order_release);
  }
}

}  // namespace convoy::CONVOY_GPU
