#include "kernels/cuda/check.h"

#include "kernels/base/error.h"

namespace convoy::CONVOY_GPU {

void check(cudaError_t result, const std::source_location& place) {
  if (result == cudaSuccess) return;
  const ErrorKind kind =
      result == cudaErrorMemoryAllocation ? ErrorKind::resource : ErrorKind::internal;
  throw Error(kind,
              fmt::format("CUDA: {}: {}", cudaGetErrorName(result), cudaGetErrorString(result)),
              fmt::format("{}:{}", place.file_name(), place.line()));
}

}  // namespace convoy::CONVOY_GPU
