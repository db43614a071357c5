// Communicators between the workers of one process: threads and rings in ordinary memory.
#pragma once

#include <memory>
#include <vector>

#include "comm/collectives.h"
#include "comm/host_communicator.h"
#include "comm/memory_ring.h"
#include "comm/progress.h"

namespace convoy {

struct ThreadOptions {
  ReduceOrder order = ReduceOrder::ranks;
  std::vector<ProgressBoard*> boards;  ///< one a worker, or none
  RingShape ring;
};

/// A communicator each for `n` workers; rank r is number r. They may be destroyed in any order,
/// when their own calls are over.
std::vector<std::unique_ptr<HostCommunicator>> make_thread_communicators(
    int n, const ThreadOptions& options = {});

}  // namespace convoy
