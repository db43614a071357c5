// bench allreduce: our all-reduce and the MPI library's own, turn about in one run, each worker on
// a core of its own; between GPUs that of NCCL. Values are integers, so that every result is
// checked exactly. They are written before and read after each call, as gradients are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/group.h"
#include "kernels/base/device.h"

namespace convoy {

struct AllReduceBenchOptions {
  std::vector<std::int64_t> bytes = {4000, 64000, 1'000'000, 25'000'000, 100'000'000};
  std::int64_t repeats = 15;  ///< measured, after three for warming up
  /// GPUs, one for each worker of this process; empty: values lie in this machine's memory.
  std::vector<Device> gpus;

  /// `usage` for bytes that are no whole number of values, and for no repeats.
  void check() const;
};

/// One implementation at one size.
struct AllReduceBenchRow {
  std::string impl;  ///< "ring": ours; "mpi": the library's, where each process has one worker;
                     ///< "nccl"
  int ranks = 0;
  std::int64_t bytes = 0;
  double median_s = 0;  ///< of the slowest rank
  double best_s = 0;
  double bus_gb_s = 0;  ///< 2 (n - 1) / n * bytes in the median time, in 1e9 bytes/s
};

/// Sums `bytes` of fp32 over all workers of `group`, in place. Runs a thread for each worker of
/// this process. The rows are the same in all processes. `communication` where a sum is wrong,
/// `usage` for a group of one and for options that check() refuses.
std::vector<AllReduceBenchRow> bench_all_reduce(Group& group, const AllReduceBenchOptions& options);

}  // namespace convoy
