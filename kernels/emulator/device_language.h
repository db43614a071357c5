// What CUDA C++ has and C++ has not, for kernels that the host runs: qualifiers, the built-in
// variables, barriers, warp functions, atomics.
#pragma once

#include <cstddef>

#include "kernels/emulator/atomics.h"
#include "kernels/emulator/barrier.h"
#include "kernels/emulator/intrinsics.h"
#include "kernels/emulator/vector_types.h"
#include "kernels/emulator/warp.h"

// NOLINTBEGIN(bugprone-reserved-identifier): the names are CUDA's.
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
// NOLINTEND(bugprone-reserved-identifier)

namespace convoy::emulator {

// Of the running thread. The machine sets them; they mean nothing outside kernels.
extern constinit thread_local uint3 threadIdx [[gnu::tls_model("initial-exec")]];
extern constinit thread_local uint3 blockIdx [[gnu::tls_model("initial-exec")]];
extern constinit thread_local dim3 blockDim [[gnu::tls_model("initial-exec")]];
extern constinit thread_local dim3 gridDim [[gnu::tls_model("initial-exec")]];

/// The calling block's shared memory; `bytes` is checked against the launch.
void* shared_memory(std::size_t bytes);

}  // namespace convoy::emulator
