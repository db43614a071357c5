// Channels between workers of several processes: rings in memory inside a process, rings in shared
// memory inside a host, MPI messages between hosts.
#pragma once

#include <memory>
#include <vector>

#include "comm/channel.h"
#include "comm/memory_ring.h"
#include "comm/mpi_session.h"

namespace convoy {

/// Which process has which workers: those of process p have the ranks from first[p] on.
struct WorkerLayout {
  std::vector<int> first = {0};  ///< one more entry than processes: the last is the number of all

  static WorkerLayout of(const std::vector<int>& workers_of_process);
  int processes() const { return static_cast<int>(first.size()) - 1; }
  int workers() const { return first.back(); }
  int workers_of(int process) const { return first[process + 1] - first[process]; }
  int most_workers() const;
  int process_of(int rank) const;
};

/// What the fabrics of this process have in common.
struct MpiLinks {
  WorkerLayout layout;
  int process = 0;
  RingShape shape;
  std::vector<bool> shares_memory;  ///< with each process
  MpiComm collectives;              ///< for negative tags
  MpiComm messages;                 ///< for the others
};

/// One fabric for each worker of this process, in order.
std::vector<std::unique_ptr<Fabric>> make_mpi_fabrics(const std::shared_ptr<const MpiLinks>& links);

/// The tag on `comm` of a channel from worker to worker; `usage` above what this MPI can tell
/// apart.
int mpi_tag(const MpiLinks& links, MPI_Comm comm, int from, int to, int tag);

}  // namespace convoy
