// What a kind of group consists of, and the group that is made of it. A kind brings communicators;
// the watchdog and the ways to end are the same for all.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/channel_communicator.h"
#include "comm/group.h"

namespace convoy {

struct GroupParts {
  World world;
  const char* backend = "thread";
  int first_rank = 0;
  int first_on_host = 0;
  int cores_per_worker = 1;
  std::vector<Cores> cores;  ///< of each worker of this process
  std::shared_ptr<AbortFlag> abort = std::make_shared<AbortFlag>();
  std::vector<std::unique_ptr<ProgressBoard>> boards;  ///< one for each worker of this process
  std::vector<std::unique_ptr<HostCommunicator>> workers;
  std::unique_ptr<HostCommunicator> processes;
  /// The others must not be waited for at the end of this process.
  std::function<void()> give_up = [] {};

  /// With boards for this process's workers.
  GroupParts(const World& world, const GroupOptions& options, const char* backend);
  /// This process's workers are those from `first` on of `workers` that use `all` alone.
  void divide_cores(const Cores& all, int first, int workers);
  /// A communicator on each of the fabrics, which are those of this process's workers.
  void add_workers(std::vector<std::unique_ptr<Fabric>> fabrics, const GroupOptions& options,
                   int spins);
  void add_processes(std::unique_ptr<Fabric> fabric, int spins);
};

/// The parts of a group of several processes; returns when all have come. `usage` in a build
/// without MPI.
GroupParts meet_over_mpi(const World& world, const GroupOptions& options);

}  // namespace convoy
