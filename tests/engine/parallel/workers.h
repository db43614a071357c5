// Workers of a test: a thread each, with a communicator over all of them.
#pragma once

#include <functional>

#include "comm/host_communicator.h"

namespace convoy::testing {

/// Runs `work` for ranks 0..n-1 at once and joins. The first failure aborts the group and is thrown
/// again here; after 40 seconds the group is aborted. `work` makes no checks of Catch2: it is not
/// thread-safe.
void run_workers(int n, const std::function<void(int rank, HostCommunicator&)>& work);

}  // namespace convoy::testing
