// Collectives of the emulated NCCL. Ranks pass values around a ring; what is added up is rounded
// to the values' type at each hop, and every rank gets the bits that one of them has computed.
#pragma once

#include "kernels/emulator/nccl_comm.h"

namespace convoy::emulator::nccl {

void all_reduce(Comm& comm, const Call& call);
void reduce_scatter(Comm& comm, const Call& call);
void all_gather(Comm& comm, const Call& call);
void broadcast(Comm& comm, const Call& call);
void reduce(Comm& comm, const Call& call);

}  // namespace convoy::emulator::nccl
