// Pinned memory through which copies from the host go, so that the source may be reused at once
// and the host need not wait for the stream.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/cuda/platform.h"

namespace convoy::CONVOY_GPU {

/// Buffers of one device, each used again when its last copy is done. Thread-safe.
class Staging {
 public:
  explicit Staging(int ordinal);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Copies `source` and queues the copy to `target` on the device. Waits only where more than a
  /// gigabyte is on its way. The device is the calling thread's current one.
  void copy_in(cudaStream_t stream, void* target, const void* source, std::size_t bytes);

 private:
  struct Buffer;
  Buffer* take(std::size_t bytes);
  Buffer* find_free(std::size_t bytes);
  Buffer* make(std::size_t bytes);
  Buffer* wait_for_one(std::size_t bytes);

  const int ordinal_;
  std::mutex mutex_;
  std::size_t total_ = 0;
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

}  // namespace convoy::CONVOY_GPU
