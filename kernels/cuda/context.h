// A GPU as a device of the engine: memory, streams, copies and its table of kernels.
#pragma once

#include <string>

#include "kernels/base/context.h"
#include "kernels/cuda/gpu_device.h"
#include "kernels/cuda/staging.h"

namespace convoy::CONVOY_GPU {

/// The kernels of this backend.
const KernelTable& kernel_table();

/// Those of the vendor's libraries, and ours for what they lack; `usage` where a library is not on
/// this machine, or `device` is no GPU. Opens the libraries.
const KernelTable& vendor_kernel_table(const Device& device, bool deterministic);

/// Device cuda:K, or emu:K where this is compiled for the emulator.
class GpuContext final : public DeviceContext {
 public:
  /// `ordinal` is CUDA's number of the device, which must exist.
  explicit GpuContext(int ordinal);
  ~GpuContext() override;

  const Device& device() const override { return gpu_.name; }
  const KernelTable& kernels() const override { return *kernels_; }
  void set_kernels(const KernelTable& table) { kernels_ = &table; }
  MemoryPool& memory() override { return gpu_.memory; }
  Stream& default_stream() override { return *default_stream_; }
  std::unique_ptr<Stream> make_stream() override;
  /// Kernels run on the GPU: what is set is only remembered.
  void set_threads(int threads) override;
  int threads() const override { return threads_; }
  std::string describe() const override;
  void set_tf32(bool allowed) override { gpu_.tf32 = allowed; }
  void copy_in(Stream& stream, void* target, const void* source, std::size_t bytes) override;
  void copy_out(Stream& stream, void* target, const void* source, std::size_t bytes) override;
  /// The source may be memory of another GPU.
  void copy(Stream& stream, void* target, const void* source, std::size_t bytes) override;
  void reach(const Device& other) override;
  bool can_capture() const override { return true; }
  void begin_capture(Stream& stream) override;
  std::unique_ptr<Graph> end_capture(Stream& stream) override;

 private:
  GpuDevice gpu_;
  Staging staging_;
  std::atomic<int> threads_{1};
  std::atomic<const KernelTable*> kernels_{&kernel_table()};
  std::unique_ptr<Stream> default_stream_;
};

}  // namespace convoy::CONVOY_GPU
