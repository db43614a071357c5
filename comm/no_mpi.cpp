// What stands in for MPI in a build without it: workers are those of one process.
#include "comm/group_parts.h"
#include "comm/mpi_library.h"

namespace convoy {

GroupParts meet_over_mpi(const World& world, const GroupOptions&) {
  CONVOY_CHECK(world.size == 1,
               "{} is {}, but this program was built without MPI: it runs as one process",
               world.size_variable, world.size);
  CONVOY_FAIL(usage, "comm mpi: this program was built without MPI");
}

HostAllReduce mpi_library_all_reduce() {
  CONVOY_FAIL(usage, "MPI's all-reduce: this program was built without MPI");
}

bool has_mpi() {
  return false;
}

}  // namespace convoy
