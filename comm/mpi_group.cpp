// How several processes meet: each looks for the others of its host, MPI starts, and all learn how
// many workers each has, who shares a host's memory, and who shares its cores.
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "comm/group_parts.h"
#include "comm/mpi_fabric.h"
#include "comm/mpi_meeting.h"
#include "comm/mpi_session.h"
#include "comm/shared_memory.h"

namespace convoy {
namespace {

/// Time for those who know who is absent to say so first: the hosts on which the absent ranks are.
constexpr std::chrono::seconds kGrace(1);

int next_meeting() {
  static std::atomic<int> meetings{0};
  return meetings++;
}

/// What is known of a meeting that has not come about in time.
std::string unfinished_text(const World& world, double timeout, bool host_has_come) {
  if (!host_has_come) {
    return fmt::format("meeting: not all {} ranks have come within {} s, host {}", world.size,
                       timeout, world.host);
  }
  const bool one_host = world.local_size == world.size;
  return fmt::format(
      "meeting: all {} ranks of host {} have come, but {} within {} s", world.local_size,
      world.host,
      one_host ? "MPI has not joined them" : fmt::format("not all {} ranks", world.size), timeout);
}

/// MPI cannot be interrupted: the process ends here.
void end_meeting(const World& world, const GroupOptions& options, bool host_has_come) {
  const Error error(ErrorKind::communication,
                    unfinished_text(world, options.timeout, host_has_come), CONVOY_PLACE);
  if (options.on_failure) {
    options.on_failure(error);
  } else {
    std::fprintf(stderr, "convoy: error: %s\n", describe(error).c_str());
  }
  _exit(static_cast<int>(error.kind()));
}

template <class T>
std::vector<T> gather(const MpiComm& comm, const T& mine) {
  std::vector<T> all(static_cast<std::size_t>(comm.size()));
  CONVOY_MPI(
      MPI_Allgather(&mine, sizeof(T), MPI_BYTE, all.data(), sizeof(T), MPI_BYTE, comm.get()));
  return all;
}

/// The processes of `host` with which this one shares memory in both directions, by a trial.
std::vector<bool> find_shared_memory(const MpiComm& host) {
  constexpr std::size_t kTrialBytes = 64;
  const SharedMemory mine = SharedMemory::make(kTrialBytes);
  const auto addresses = gather(host, mine.address());
  const std::size_t size = addresses.size();
  std::vector<char> opened(size);
  for (std::size_t r = 0; r < size; ++r) {
    opened[r] = SharedMemory::open(addresses[r], kTrialBytes).has_value();
  }
  std::vector<char> by_others(size);
  CONVOY_MPI(MPI_Alltoall(opened.data(), 1, MPI_CHAR, by_others.data(), 1, MPI_CHAR, host.get()));
  std::vector<bool> shared(size);
  for (std::size_t r = 0; r < size; ++r) shared[r] = opened[r] && by_others[r];
  return shared;
}

struct HostShare {
  int process;
  int workers;
  cpu_set_t cores;
};

HostShare share_of(int process, int workers) {
  HostShare share{process, workers, {}};
  CPU_ZERO(&share.cores);
  sched_getaffinity(0, sizeof share.cores, &share.cores);
  return share;
}

bool meet(const cpu_set_t& a, const cpu_set_t& b) {
  cpu_set_t common;
  CPU_AND(&common, &a, &b);
  return CPU_COUNT(&common) > 0;
}

/// Ranks that share a core mask split it.
int cores_for_each(const std::vector<HostShare>& host, const HostShare& mine) {
  int workers = 0;
  for (const HostShare& share : host) {
    if (meet(share.cores, mine.cores)) workers += share.workers;
  }
  return std::max(1, CPU_COUNT(&mine.cores) / std::max(1, workers));
}

/// Each worker gets cores of its own where processes have all of them in common or none.
void divide_cores(const std::vector<HostShare>& host, const HostShare& mine, GroupParts& parts) {
  int first = 0, workers = 0;
  for (const HostShare& share : host) {
    if (!meet(share.cores, mine.cores)) continue;
    if (!CPU_EQUAL(&share.cores, &mine.cores)) return;
    if (share.process == mine.process) first = workers;
    workers += share.workers;
  }
  parts.divide_cores(cores_in_order(mine.cores), first, workers);
}

/// Whether workers of this host spin while they wait: not where they outnumber its cores.
int spins_on(const std::vector<HostShare>& host, const HostShare& mine) {
  cpu_set_t cores = mine.cores;
  int workers = 0;
  for (const HostShare& share : host) {
    CPU_OR(&cores, &cores, &share.cores);
    workers += share.workers;
  }
  const int in_host = spins_for(workers, CPU_COUNT(&cores));
  const int in_process = spins_for(mine.workers, CPU_COUNT(&mine.cores));
  return std::min(in_host, in_process);
}

/// For all processes, from those of this host.
std::vector<bool> spread(const std::vector<bool>& on_host, const std::vector<HostShare>& host,
                         int processes) {
  std::vector<bool> all(static_cast<std::size_t>(processes), false);
  for (std::size_t i = 0; i < host.size(); ++i) all[host[i].process] = on_host[i];
  return all;
}

void note_without_memory(const std::vector<bool>& shared, const std::vector<HostShare>& host,
                         const GroupOptions& options) {
  if (!options.on_note) return;
  for (std::size_t i = 0; i < shared.size(); ++i) {
    if (shared[i]) continue;
    options.on_note(
        fmt::format("comm mpi: no shared memory with process {} of this host; messages of "
                    "MPI instead",
                    host[i].process));
  }
}

std::shared_ptr<MpiLinks> links_between(const MpiComm& all, const std::vector<int>& workers,
                                        std::vector<bool> shares_memory) {
  auto links = std::make_shared<MpiLinks>();
  links->layout = WorkerLayout::of(workers);
  links->process = all.rank();
  links->shares_memory = std::move(shares_memory);
  links->collectives = MpiComm::copy_of(all.get());
  links->messages = MpiComm::copy_of(all.get());
  return links;
}

GroupParts parts_over(const MpiComm& all, const World& world, const GroupOptions& options) {
  const MpiComm host = MpiComm::host_of(all.get());
  const HostShare mine = share_of(all.rank(), options.local_workers);
  const auto shares = gather(host, mine);
  std::vector<bool> shared(shares.size(), false);
  if (options.shared_memory) {
    shared = find_shared_memory(host);
    note_without_memory(shared, shares, options);
  }
  const auto shares_memory = spread(shared, shares, all.size());
  const auto workers = gather(all, options.local_workers);
  const auto links = links_between(all, workers, shares_memory);
  const int spins = spins_on(shares, mine);
  GroupParts parts(world, options, "mpi");
  for (int r = 0; r < host.rank(); ++r) parts.first_on_host += shares[r].workers;
  parts.cores_per_worker = cores_for_each(shares, mine);
  divide_cores(shares, mine, parts);
  parts.first_rank = links->layout.first[links->process];
  parts.add_workers(make_mpi_fabrics(links), options, spins);
  const std::vector<int> one_each(workers.size(), 1);
  parts.add_processes(
      std::move(make_mpi_fabrics(links_between(all, one_each, shares_memory)).front()), spins);
  return parts;
}

}  // namespace

GroupParts meet_over_mpi(const World& world, const GroupOptions& options) {
  CONVOY_CHECK(!world.launcher.empty(),
               "comm mpi: no launcher's variables (OMPI_COMM_WORLD_SIZE, PMI_SIZE, SLURM_NTASKS, "
               "WORLD_SIZE) are set: start the ranks with mpirun, srun or convoy launch");
  const Deadline deadline(options.timeout);
  const HostMeeting meeting(world, next_meeting());
  const bool host_has_come = meeting.wait(deadline);
  const DeadlineGuard guard(deadline.time() + kGrace,
                            [&] { end_meeting(world, options, host_has_come); });
  MpiSession::start(world);
  GroupParts parts = parts_over(MpiComm::copy_of(MPI_COMM_WORLD), world, options);
  parts.give_up = MpiSession::give_up;
  return parts;
}

}  // namespace convoy
