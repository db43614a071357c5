// The emulated devices of this process: made on first use, they live as long as it does.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "kernels/emulator/device_memory.h"
#include "kernels/emulator/runtime_api.h"

namespace convoy::emulator {

/// As of an H200. Limits of launches and the number of multiprocessors stand in machine.h.
inline constexpr std::size_t kSharedBytesPerBlock = 48 << 10;
inline constexpr std::size_t kDefaultCapacity = std::size_t{16} << 30;

/// One device. Thread-safe.
class EmulatedDevice {
 public:
  explicit EmulatedDevice(int index) : index_(index), memory_(index, kDefaultCapacity) {}

  int index() const { return index_; }
  MemoryRange& memory() { return memory_; }

  /// The error of a kernel that went wrong: from then on every call for the device returns it.
  cudaError_t fault() const { return fault_.load(std::memory_order_acquire); }
  /// What the machine said of it.
  std::string fault_text() const;
  /// The first fault is kept.
  void set_fault(cudaError_t error, const std::string& text);
  void clear_fault();

  /// Whether its kernels may use memory of `peer`.
  std::atomic<bool>& peer_access(int peer) { return peers_[static_cast<std::size_t>(peer)]; }

 private:
  const int index_;
  MemoryRange memory_;
  std::atomic<cudaError_t> fault_{cudaSuccess};
  mutable std::mutex mutex_;
  std::string fault_text_;
  std::array<std::atomic<bool>, kMostDevices> peers_{};
};

/// The device of that number, 0..kMostDevices-1.
EmulatedDevice& emulated_device(int index);

/// The range of pinned host memory.
MemoryRange& pinned_memory();

/// The calling thread's device.
int current_device();

/// Remembers `error` for cudaGetLastError() of the calling thread and returns it.
cudaError_t note(cudaError_t error);

/// Returns `error` and keeps `detail` as the calling thread's, for messages.
cudaError_t fail(cudaError_t error, std::string detail);

/// What a call for the current device must return before it does anything: the device's fault, or
/// cudaErrorNotPermitted inside a host function.
cudaError_t refusal();

/// CUDA calls of this thread are refused while this lives: a host function of a stream runs.
class HostFunctionScope {
 public:
  HostFunctionScope();
  ~HostFunctionScope();
  HostFunctionScope(const HostFunctionScope&) = delete;
  HostFunctionScope& operator=(const HostFunctionScope&) = delete;
};

}  // namespace convoy::emulator
