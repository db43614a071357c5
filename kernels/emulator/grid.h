// The border between the two halves of the emulator: the runtime queues grids in streams, the
// machine runs them.
#pragma once

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/emulator/argument_pointers.h"
#include "kernels/emulator/runtime_api.h"
#include "kernels/emulator/vector_types.h"

namespace convoy::emulator {

/// What a grid looks like. Functions that choose one are pure: of the problem's shape alone.
struct LaunchConfig {
  dim3 grid = {1, 1, 1};
  dim3 block = {1, 1, 1};
  std::size_t shared_bytes = 0;  ///< sizeof the kernel's struct of shared memory
  cudaStream_t stream = nullptr;
};

/// A launch with its arguments copied: `thread` is the kernel, called once by every thread.
struct GridWork {
  LaunchConfig config;
  int device = 0;
  std::string kernel;  ///< for messages: "convoy::emulator::scale_kernel<float>"
  std::function<void()> thread;
  std::vector<ArgumentPointer> pointers = {};  ///< among the arguments; where nobody looked, none
};

/// What a GPU would raise for a kernel that runs wrong; sticky for its device.
class DeviceFault : public std::runtime_error {
 public:
  DeviceFault(cudaError_t error, const std::string& text)
      : std::runtime_error(text), error_(error) {}
  cudaError_t error() const { return error_; }

 private:
  cudaError_t error_;
};

/// Of the machine: runs all blocks of a grid on host threads; returns when all are done. Throws
/// DeviceFault with the kernel, block and thread in its text.
void run_grid(const GridWork& work);

/// Of the runtime: checks a launch as CUDA does and queues it in its stream (or adds it to the
/// graph that the stream captures). Throws convoy::Error of kind `internal` where CUDA returns an
/// error.
void queue_grid(GridWork work);

}  // namespace convoy::emulator
