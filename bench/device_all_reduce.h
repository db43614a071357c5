// NCCL's all-reduce of one worker's GPU, for `bench allreduce`.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/nccl_devices.h"
#include "kernels/base/context.h"

namespace convoy {

/// Collective to make. Used by the thread of its worker.
class DeviceAllReduce {
 public:
  DeviceAllReduce(HostCommunicator& group, const Device& device);

  /// Copies values to the device; returns when they are there.
  void fill(const float* values, std::int64_t count);
  /// Adds them up over the ranks, in place; returns when that is done.
  void run(std::int64_t count);
  /// Copies them back.
  void fetch(float* values, std::int64_t count);

 private:
  DeviceContext& device_;
  std::unique_ptr<Stream> stream_;
  MemoryPool::Block memory_;
  std::unique_ptr<NcclCommunicator> nccl_;
};

}  // namespace convoy
