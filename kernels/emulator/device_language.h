// What CUDA C++ has and C++ has not, for kernels that the host runs: qualifiers, the built-in
// variables, barriers, warp functions, atomics.
#pragma once

#include <cstddef>

#include "kernels/emulator/vector_types.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

namespace convoy::emulator {

/// The calling block's shared memory; `bytes` is checked against the launch.
void* shared_memory(std::size_t bytes);

}  // namespace convoy::emulator
