// How kernels report bad input.
#pragma once

#include "kernels/cuda/gpu_stream.h"

namespace convoy::CONVOY_GPU {

/// Reports `code` with its values; of several threads the first one is kept.
__device__ __forceinline__ void report_failure(DeviceFailure* failure, FailureCode code,
                                               std::int64_t value, std::int64_t limit,
                                               std::int64_t where = 0) {
  if (atomicCAS(&failure->taken, 0, 1) != 0) return;
  failure->value = value;
  failure->limit = limit;
  failure->where = where;
  __threadfence();
  failure->code = static_cast<std::int32_t>(code);
}

}  // namespace convoy::CONVOY_GPU
