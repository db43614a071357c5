// The calls of the CUDA runtime that the engine uses, with CUDA's names and meaning.
#pragma once

#include "kernels/emulator/vector_types.h"

namespace convoy::emulator {

/// Numbers are CUDA's.
enum cudaError_t : int {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
};

const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);

}  // namespace convoy::emulator
