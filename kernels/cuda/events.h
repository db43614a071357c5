// CUDA events behind Event, taken from a pool: one is recorded for every block that crosses
// streams.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/base/stream.h"
#include "kernels/cuda/platform.h"

namespace convoy::CONVOY_GPU {

/// Events of one device that nobody uses. Thread-safe; lives as long as the last event.
class EventPool {
 public:
  EventPool(int ordinal, bool timed) : ordinal_(ordinal), timed_(timed) {}
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  cudaEvent_t take();
  void give_back(cudaEvent_t event);

 private:
  const int ordinal_;
  const bool timed_;
  std::mutex mutex_;
  std::vector<cudaEvent_t> free_;
};

/// A point in a stream's work.
class GpuEvent : public Event::State {
 public:
  /// Recorded on `stream`. One that a capture recorded is complete for the host: its work runs when
  /// the graph does, in the order of the stream that launches it.
  GpuEvent(std::shared_ptr<EventPool> pool, cudaStream_t stream, bool captured);
  ~GpuEvent() override;
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;

  /// After a fault of the device events are done: nobody must wait for ever.
  bool done() const override;
  void wait() const override;

  cudaEvent_t handle() const { return event_; }
  bool captured() const { return captured_; }

 private:
  const std::shared_ptr<EventPool> pool_;
  const cudaEvent_t event_;
  const bool captured_;
  mutable std::atomic<bool> reached_;
};

}  // namespace convoy::CONVOY_GPU
