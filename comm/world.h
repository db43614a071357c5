// Who am I: which process of how many, as the launcher's variables say. Nothing here starts MPI.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/base/device.h"

namespace convoy {

/// Reads an environment variable; null where it is not set.
using EnvironmentReader = std::function<const char*(const char* name)>;

/// This process among those that were started together.
struct World {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  ///< among the processes of this host
  int local_size = 1;
  std::string launcher;       ///< "Open MPI", "MPICH", "Slurm", "torchrun"; empty: started alone
  std::string size_variable;  ///< the launcher's variable that gave `size`
  std::string job;            ///< equal for the ranks of this job alone; empty: not known
  std::string host;
};

/// Reads the variables of Open MPI, MPICH (Hydra), Slurm and torchrun, in this order: the first
/// size that is set counts. `usage` where variables contradict each other: names and values are
/// said.
World discover_world(const EnvironmentReader& environment);
/// From this process's own environment.
World discover_world();

/// The devices of local rank r of L where none are named: those of `visible` from r * floor(D / L)
/// to (r + 1) * floor(D / L) - 1. `usage` if D < L.
std::vector<Device> devices_of_rank(const std::vector<Device>& visible, int local_rank,
                                    int local_size);

}  // namespace convoy
