// Checks of what a call of NCCL is given, at the call.
#pragma once

#include <optional>

#include "kernels/emulator/nccl_comm.h"

namespace convoy::emulator::nccl {

/// What is wrong with the call; none if it may be queued. Buffers must lie whole in live memory of
/// the communicator's device, the stream must be of that device, and input and output may overlap
/// only in the ways that NCCL's documentation calls in place.
std::optional<Trouble> find_fault(const Comm& comm, const Call& call, cudaStream_t stream);

}  // namespace convoy::emulator::nccl
