// How the clocks of processes differ, for times that are drawn on one axis.
#pragma once

#include "comm/host_communicator.h"

namespace convoy {

struct ClockOffset {
  double seconds = 0;  ///< the steady clock of rank 0 minus this worker's
  double error = 0;    ///< by which any worker's may be wrong; known to rank 0
};

/// Collective. `in_process`: whether this worker is in the process of rank 0, whose first
/// `local_workers` ranks share its clock (known to rank 0).
ClockOffset offset_to_leader(HostCommunicator& group, bool in_process, int local_workers);

}  // namespace convoy
