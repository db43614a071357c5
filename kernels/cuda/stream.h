// Streams of GPUs.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "kernels/base/stream_recorder.h"
#include "kernels/cuda/gpu_device.h"
#include "kernels/cuda/gpu_stream.h"

namespace convoy::CONVOY_GPU {

/// A CUDA stream. One thread at a time queues work; others may wait for its events.
class GpuStream final : public Stream {
 public:
  explicit GpuStream(GpuDevice& device);
  ~GpuStream() override;

  Event record() override;
  void wait(const Event& event) override;
  /// Errors surface here in this order: of the device, of a kernel's input, of a host_call().
  void synchronize() override;
  void host_call(std::function<void()> work) override;
  void* scratch(std::size_t bytes) override;
  /// Waits for the stream: what it has run is told to the recorder before.
  void record_to(std::shared_ptr<StreamRecorder> recorder) override;

  cudaStream_t handle() const { return stream_; }
  GpuDevice& gpu() const { return device_; }
  DeviceFailure* failure() const { return failure_; }
  bool capturing() const;
  /// Scratch memory that the capture so far has used, for its graph to keep.
  std::vector<std::shared_ptr<MemoryPool::Block>> take_captured_scratch();

  /// Begin and end of a kernel or copy, for the recorder. `kernel` lives as long as the program.
  void begin_span(const char* kernel);
  void end_span();

 private:
  // Work for the host, owned by whoever comes first: CUDA's call of it, or the stream's end.
  struct HostCalls;
  struct Span {
    const char* kernel;
    cudaEvent_t begin, end;
  };
  static void run_host_call(void* call);
  void drain() noexcept;
  void throw_failure();
  cudaEvent_t record_time();
  void tell_spans();
  void drop_last_span();

  GpuDevice& device_;
  cudaStream_t stream_ = nullptr;
  DeviceFailure* failure_ = nullptr;  // pinned memory: read here, written by kernels
  std::shared_ptr<MemoryPool::Block> scratch_;
  std::vector<std::shared_ptr<MemoryPool::Block>> outgrown_;  // by a capture that goes on
  std::shared_ptr<HostCalls> host_calls_;
  std::shared_ptr<StreamRecorder> recorder_;
  std::vector<Span> spans_;
  cudaEvent_t time_zero_ = nullptr;  // an event that passed at `host_zero_`
  std::chrono::steady_clock::time_point host_zero_;
};

/// The GPU stream behind `stream`; `internal` if it is another backend's.
GpuStream& gpu(Stream& stream);

}  // namespace convoy::CONVOY_GPU
