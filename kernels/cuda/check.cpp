#include "kernels/cuda/check.h"

#include "kernels/base/error.h"
#include "kernels/cuda/runtime_extras.h"

namespace convoy::CONVOY_GPU {

std::string describe(cudaError_t result) {
  const std::string detail = failure_detail();
  return fmt::format("CUDA: {}: {}{}{}", cudaGetErrorName(result), cudaGetErrorString(result),
                     detail.empty() ? "" : ": ", detail);
}

void check(cudaError_t result, const CallSite& place) {
  if (result == cudaSuccess) return;
  const ErrorKind kind =
      result == cudaErrorMemoryAllocation ? ErrorKind::resource : ErrorKind::internal;
  throw Error(kind, describe(result), fmt::format("{}:{}", place.file_name(), place.line()));
}

}  // namespace convoy::CONVOY_GPU
