// All workers of a job: those of this process and those of the others. It owns the communicators
// and the watchdog.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/collectives.h"
#include "comm/host_communicator.h"
#include "comm/progress.h"
#include "comm/world.h"
#include "kernels/base/cores.h"

namespace convoy {

struct GroupOptions {
  /// auto, thread, mpi; nccl is the same as auto: the host's part of it, see comm/nccl_devices.h.
  std::string backend = "auto";
  double timeout = 60;    ///< seconds: for the meeting, and for a rank that stands still
  int local_workers = 1;  ///< of this process; processes may differ
  std::string iface;      ///< network interface for what is not MPI's; empty: chosen
  ReduceOrder order = ReduceOrder::ranks;
  bool shared_memory = true;  ///< for collectives between processes of a host; else MPI's messages
  /// Ends the process (or tells its user) when a rank is dead, stuck or has failed. Called once,
  /// from the watchdog's thread. Default: prints the program's error line, then _exit with its
  /// code.
  std::function<void(const Error&)> on_failure;
  /// Lines for people: a slow rank, the interface chosen, a warning at half of the timeout.
  std::function<void(const std::string&)> on_note;
};

/// Made and destroyed by all processes together; several may follow each other in one process.
class Group {
 public:
  /// Meets the other processes. `communication` that names who is absent after the timeout; `usage`
  /// where the backend is not in this build or the launcher's size differs from MPI's.
  static std::unique_ptr<Group> make(const World& world, const GroupOptions& options);
  virtual ~Group() = default;

  virtual const World& world() const = 0;
  virtual const char* backend() const = 0;
  /// Workers of all processes; rank of this process's first one; number of this process's.
  virtual int size() const = 0;
  virtual int first_rank() const = 0;
  /// Of this process's first worker among all workers of its host.
  virtual int first_on_host() const = 0;
  virtual int local_workers() const = 0;
  /// The communicator of local worker `local` over all workers. One thread each.
  virtual HostCommunicator& worker(int local) = 0;
  /// One member a process: for decisions on the host, by the thread that made the group.
  virtual HostCommunicator& processes() = 0;
  virtual ProgressBoard& progress(int local) = 0;
  /// Cores for each worker of this process, at least 1: those that the process may use, divided by
  /// the workers of all processes of this host that share them.
  virtual int cores_per_worker() const = 0;
  /// Those of local worker `local`, no other worker's; empty where workers outnumber cores, or
  /// where processes share some cores but not all.
  virtual const Cores& cores(int local) const = 0;
  /// This process cannot go on: tells all others, who stop with the first failure of all. Returns
  /// that failure, which may be another rank's.
  virtual Error fail(const Error& error) = 0;
};

}  // namespace convoy
