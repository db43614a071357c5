// Calls of the CUDA runtime whose failure throws.
#pragma once

#include <string>

#include "kernels/base/call_site.h"
#include "kernels/cuda/platform.h"

namespace convoy::CONVOY_GPU {

/// Throws for anything but cudaSuccess: `resource` for lack of memory, else `internal`, with CUDA's
/// name and text for it and the place of the call.
void check(cudaError_t result, const CallSite& place = CallSite::current());

/// "CUDA: cudaErrorNoDevice: no CUDA-capable device is detected".
std::string describe(cudaError_t result);

}  // namespace convoy::CONVOY_GPU
