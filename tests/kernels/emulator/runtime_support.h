// What tests of the emulated runtime share: handles that go away, and a gate that holds a stream
// up.
#pragma once

#include <atomic>
#include <functional>

#include "kernels/cuda/platform.h"
#include "kernels/emulator/runtime_api.h"
#include "kernels/emulator/test_control.h"
#include "tests/support/catch.h"

namespace convoy::emulator {

/// The thread's device while it lives, then device 0 again.
class OnDevice {
 public:
  explicit OnDevice(int device) { REQUIRE(cudaSetDevice(device) == cudaSuccess); }
  ~OnDevice() { cudaSetDevice(0); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
};

/// A stream of the thread's device.
class TestStream {
 public:
  TestStream() {
    REQUIRE(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess);
  }
  ~TestStream() { cudaStreamDestroy(stream_); }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class TestEvent {
 public:
  explicit TestEvent(unsigned flags = cudaEventDefault) {
    REQUIRE(cudaEventCreateWithFlags(&event_, flags) == cudaSuccess);
  }
  ~TestEvent() { cudaEventDestroy(event_); }
  TestEvent(const TestEvent&) = delete;
  TestEvent& operator=(const TestEvent&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Device memory of the thread's device.
class TestMemory {
 public:
  explicit TestMemory(std::size_t bytes) { REQUIRE(cudaMalloc(&data_, bytes) == cudaSuccess); }
  ~TestMemory() { cudaFree(data_); }
  TestMemory(const TestMemory&) = delete;
  TestMemory& operator=(const TestMemory&) = delete;
  template <class T = void>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

/// Holds a stream up until it is opened.
class Gate {
 public:
  void close(cudaStream_t stream) {
    const cudaError_t result = cudaLaunchHostFunc(
        stream, [](void* gate) { static_cast<Gate*>(gate)->open_.wait(false); }, this);
    REQUIRE(result == cudaSuccess);
  }
  void open() {
    open_ = true;
    open_.notify_all();
  }

 private:
  std::atomic<bool> open_{false};
};

/// How streams run while it lives.
class StreamModeScope {
 public:
  explicit StreamModeScope(StreamMode mode, unsigned seed = 0) { set_stream_mode(mode, seed); }
  ~StreamModeScope() { set_stream_mode(StreamMode::threads); }
  StreamModeScope(const StreamModeScope&) = delete;
  StreamModeScope& operator=(const StreamModeScope&) = delete;
};

template <class T>
T read_value(const void* device) {
  T value{};
  REQUIRE(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost) == cudaSuccess);
  return value;
}

}  // namespace convoy::emulator
