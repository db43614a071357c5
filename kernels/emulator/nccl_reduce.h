// Arithmetic of the emulated NCCL, on values in memory. Every result is rounded to the values'
// type, as it is between two hops of a ring.
#pragma once

#include <cstddef>

#include "kernels/emulator/nccl_api.h"

namespace convoy::emulator::nccl {

/// out[i] = partial[i] op own[i]; avg adds. `out` may be either of them.
void combine(ncclDataType_t type, ncclRedOp_t op, const void* partial, const void* own, void* out,
             std::size_t count);
/// What a rank brings in: a floating avg takes its values times 1 / ranks.
void bring_in(ncclDataType_t type, ncclRedOp_t op, int ranks, const void* own, void* out,
              std::size_t count);
/// What is done at the end of a sum: an integer avg is divided by the number of ranks.
void finish(ncclDataType_t type, ncclRedOp_t op, int ranks, void* values, std::size_t count);

}  // namespace convoy::emulator::nccl
