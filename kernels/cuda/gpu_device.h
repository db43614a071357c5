// What the streams and the context of one GPU share.
#pragma once

#include <atomic>
#include <memory>

#include "kernels/base/memory_pool.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/events.h"

namespace convoy::CONVOY_GPU {

/// A device: CUDA's number for it, its memory, its events. Outlives its streams.
struct GpuDevice {
  GpuDevice(Device device, MemoryPool::Source source)
      : name(device),
        events(std::make_shared<EventPool>(device.index, false)),
        timed_events(std::make_shared<EventPool>(device.index, true)),
        memory(device, std::move(source)) {}

  /// CUDA's current device belongs to a thread: makes it this one.
  void make_current() const { check(cudaSetDevice(name.index)); }

  const Device name;
  std::atomic<bool> tf32{false};
  const std::shared_ptr<EventPool> events;
  const std::shared_ptr<EventPool> timed_events;
  MemoryPool memory;
};

}  // namespace convoy::CONVOY_GPU
