// A device whose memory is this machine's: what the cpu and the reference backend share.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "kernels/base/context.h"
#include "kernels/base/cores.h"
#include "kernels/base/host_stream.h"

namespace convoy {

/// Memory from the system, one worker thread per stream.
class HostContext : public DeviceContext {
 public:
  /// `apply_threads` runs on each stream's thread before its first work, and again before the first
  /// work queued after a set_threads().
  HostContext(Device device, const KernelTable& kernels, std::string description,
              void (*apply_threads)(int threads));

  const Device& device() const override { return device_; }
  const KernelTable& kernels() const override { return kernels_; }
  MemoryPool& memory() override { return memory_; }
  Stream& default_stream() override { return *default_stream_; }
  std::unique_ptr<Stream> make_stream() override;
  void set_threads(int threads) override;
  int threads() const override { return threads_.count; }
  void set_cores(const Cores& cores) override;
  std::string describe() const override { return description_; }
  void copy_in(Stream& stream, void* target, const void* source, std::size_t bytes) override;
  void write_in(Stream& stream, void* target, std::size_t bytes,
                const std::function<void(void* memory)>& write) override;
  void copy_out(Stream& stream, void* target, const void* source, std::size_t bytes) override;
  void copy(Stream& stream, void* target, const void* source, std::size_t bytes) override;

 protected:
  /// Those of set_cores().
  Cores cores() const;

 private:
  const Device device_;
  const KernelTable& kernels_;
  const std::string description_;
  KernelThreads threads_;
  mutable std::mutex mutex_;
  Cores cores_;
  MemoryPool memory_;
  std::unique_ptr<HostStream> default_stream_;
};

}  // namespace convoy
