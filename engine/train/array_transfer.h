// Named arrays between workers: parts of a network's state on their way to the one that saves it.
#pragma once

#include <vector>

#include "comm/host_communicator.h"
#include "engine/io/named_array.h"

namespace convoy {

/// Blocks until `peer` has taken them with receive_arrays().
void send_arrays(HostCommunicator& group, const std::vector<NamedArray>& arrays, int peer);
std::vector<NamedArray> receive_arrays(HostCommunicator& group, int peer);

}  // namespace convoy
