// The MPI library's own all-reduce, to compare ours with.
#pragma once

#include <cstdint>
#include <functional>

#include "comm/communicator.h"

namespace convoy {

/// Whether this program was built with MPI.
bool has_mpi();

/// Blocks; all processes make the same calls. `in` may be `out`.
using HostAllReduce = std::function<void(const void* in, void* out, std::int64_t count, DType dtype,
                                         Reduction reduction)>;

/// An all-reduce over all processes, on a communicator of its own: made by all of them together.
/// `usage` where MPI does not run, because no group has been made of it, and for types that MPI
/// lacks.
HostAllReduce mpi_library_all_reduce();

}  // namespace convoy
