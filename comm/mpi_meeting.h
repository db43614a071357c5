// The ranks of a job look for each other before MPI starts: MPI_Init waits for an absent rank
// without an end and without a word. Nothing here calls MPI.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/world.h"
#include "kernels/base/error.h"

namespace convoy {

/// When a meeting that may take `seconds` ends.
class Deadline {
 public:
  explicit Deadline(double seconds);
  double seconds() const { return seconds_; }
  std::chrono::steady_clock::time_point time() const { return time_; }
  bool passed() const { return std::chrono::steady_clock::now() >= time_; }

 private:
  double seconds_;
  std::chrono::steady_clock::time_point time_;
};

/// The ranks of one host. While it lives, others see that this rank has come.
class HostMeeting {
 public:
  /// `number`: of the meeting, from 0: all ranks count alike.
  HostMeeting(const World& world, int number);
  ~HostMeeting();
  HostMeeting(const HostMeeting&) = delete;
  HostMeeting& operator=(const HostMeeting&) = delete;

  /// Returns when all ranks of this host have come. `communication` that names the absent ones.
  void wait(const Deadline& deadline) const;

 private:
  std::string address_of(int local_rank) const;
  bool has_come(int local_rank) const;
  Error absent_error(const std::vector<int>& local_ranks, const Deadline& deadline) const;

  const World world_;
  const int number_;
  int socket_ = -1;
};

/// Runs `expired` on a thread of its own if it still lives after the deadline.
class DeadlineGuard {
 public:
  DeadlineGuard(std::chrono::steady_clock::time_point deadline, std::function<void()> expired);
  ~DeadlineGuard();
  DeadlineGuard(const DeadlineGuard&) = delete;
  DeadlineGuard& operator=(const DeadlineGuard&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace convoy
