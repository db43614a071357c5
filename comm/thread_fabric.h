// Channels between workers that are threads of this process.
#pragma once

#include <memory>
#include <vector>

#include "comm/channel.h"
#include "comm/memory_ring.h"

namespace convoy {

/// One fabric each for `n` workers. The rings live as long as any of the fabrics.
std::vector<std::unique_ptr<Fabric>> make_thread_fabrics(int n, const RingShape& shape = {});

}  // namespace convoy
