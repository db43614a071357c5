// Starting a kernel. `<<<>>>` is nvcc's alone; this works in the emulator too.
#pragma once

#include <cstddef>

#include "kernels/cuda/platform.h"

#ifdef __CUDACC__
#include "kernels/cuda/check.h"
#else
#include "kernels/emulator/launch.h"
#endif

namespace convoy::CONVOY_GPU {

#ifdef __CUDACC__

/// What a grid looks like. Functions that choose one are pure: of the problem's shape alone.
struct LaunchConfig {
  dim3 grid = {1, 1, 1};
  dim3 block = {1, 1, 1};
  std::size_t shared_bytes = 0;  ///< sizeof the kernel's struct of shared memory
  cudaStream_t stream = nullptr;
};

/// Queues `kernel`, whose arguments are copied. `internal` if the device refuses the launch.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const LaunchConfig& config, Arguments... arguments) {
  constexpr std::size_t kWithoutAsking = 48 << 10;
  if (config.shared_bytes > kWithoutAsking) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(config.shared_bytes)));
  }
  cudaLaunchConfig_t how = {};
  how.gridDim = config.grid;
  how.blockDim = config.block;
  how.dynamicSmemBytes = config.shared_bytes;
  how.stream = config.stream;
  check(cudaLaunchKernelEx(&how, kernel, static_cast<Parameters>(arguments)...));
}

#else

using emulator::launch;        // NOLINT(misc-unused-using-decls): for the namespace's other files
using emulator::LaunchConfig;  // NOLINT(misc-unused-using-decls)

#endif

}  // namespace convoy::CONVOY_GPU
