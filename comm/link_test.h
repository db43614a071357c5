// The test of the links between neighbours before work begins: messages of many sizes, both ways at
// once, compared and timed.
#pragma once

#include <cstddef>
#include <vector>

#include "comm/host_communicator.h"

namespace convoy {

/// The direction `from` -> `to` as the receiver `to` has found it.
struct LinkReport {
  int from = 0;
  int to = 0;
  double latency_s = 0;       ///< of a small message, one way
  double bytes_per_s = 0;     ///< of large ones, while others go the other way
  double clock_offset_s = 0;  ///< the steady clock of `from` minus that of `to`
};

struct LinkTestOptions {
  double limit = 5;  ///< seconds that the next message of a peer may take
  /// Bytes; at least one size. The last ones find memory that was used before, as in a run.
  std::vector<std::size_t> sizes = {1024, 16384, 262144, 16777216, 4194304, 4194304, 4194304};
};

/// Tests the links to and from each of `peers` (ranks of `group`, each named once), all at once, on
/// tag `tag`; every peer calls it with this rank among its own. `communication` that names the pair
/// if a byte is wrong, or if a message has not come in time. Reports are in the order of `peers`.
std::vector<LinkReport> test_links(HostCommunicator& group, const std::vector<int>& peers, int tag,
                                   const LinkTestOptions& options = {});

}  // namespace convoy
