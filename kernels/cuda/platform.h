// The one place where the sources of this folder meet their compiler. Everything here is compiled
// twice: for GPUs (nvcc, or the host compiler for what is no kernel) with CUDA's own headers, and
// for the emulator by the host compiler alone, whose include path has headers of the same names
// first (kernels/emulator/include/). The build defines CONVOY_GPU, the namespace of the code:
// `cuda` or `emulator`. The emulator declares CUDA's names in convoy::emulator, so that one program
// holds both and plain calls such as cudaMalloc() resolve to the right ones.
#pragma once

#include <cuda_runtime.h>

#include "kernels/base/host_device.h"

#ifndef CONVOY_GPU
#error "CONVOY_GPU is not defined: expected cuda or emulator"
#endif

#ifdef __CUDACC__
#define CONVOY_UNROLL _Pragma("unroll")
#define CONVOY_NO_UNROLL _Pragma("unroll 1")
#else
#define CONVOY_UNROLL
#define CONVOY_NO_UNROLL
#endif
