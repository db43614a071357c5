// The work of an emulated NCCL call, done by the thread of its stream: collectives over a ring,
// messages side by side. It waits for the other ranks as a kernel on a GPU does.
#pragma once

#include <vector>

#include "kernels/emulator/nccl_comm.h"

namespace convoy::emulator::nccl {

/// Does the calls of one group: collectives in their order, then messages. Never throws: what goes
/// wrong is the communicator's asynchronous error.
void run_calls(Comm& comm, const std::vector<Call>& calls);

}  // namespace convoy::emulator::nccl
