// Collectives on tensors, over the group that the calling worker has joined, with the names of
// torch.distributed. Queued on the tensor's device as ops are, and not recorded for backward. All
// workers make the same calls with tensors of one shape and type.
#pragma once

#include "comm/communicator.h"
#include "engine/tensor/tensor.h"

namespace convoy {

/// Overwrites the values with the sum (mean, largest) of those of all workers: the same bits on
/// all.
void all_reduce(Tensor tensor, Reduction reduction = Reduction::sum);
/// Overwrites the values with those of worker `root`.
void broadcast(Tensor tensor, int root);

}  // namespace convoy
