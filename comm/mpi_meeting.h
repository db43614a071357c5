// The ranks of a job look for each other before MPI starts: MPI_Init waits for an absent rank
// without an end and without a word. Nothing here calls MPI.
#pragma once

#include <string>
#include <vector>

#include "comm/deadline.h"
#include "comm/world.h"
#include "kernels/base/error.h"

namespace convoy {

/// The ranks of one host. While it lives, others see that this rank has come.
class HostMeeting {
 public:
  /// `number`: of the meeting, from 0: all ranks count alike.
  HostMeeting(const World& world, int number);
  ~HostMeeting();
  HostMeeting(const HostMeeting&) = delete;
  HostMeeting& operator=(const HostMeeting&) = delete;

  /// Returns when all ranks of this host have come. `communication` that names the absent ones.
  /// False at once where the job has no name of its own to look for them by.
  bool wait(const Deadline& deadline) const;

 private:
  std::string address_of(int local_rank) const;
  bool has_come(int local_rank) const;
  Error absent_error(const std::vector<int>& local_ranks, const Deadline& deadline) const;

  const World world_;
  const int number_;
  int socket_ = -1;
};

}  // namespace convoy
