// One rank of a job for tests of the meeting: joins the group, says so, and leaves it.
// Usage: mpi_meet TIMEOUT [BACKEND]
#include <cstdio>
#include <cstdlib>

#include "comm/process_group.h"

int main(int argc, char** argv) {
  try {
    convoy::init_process_group(argc > 2 ? argv[2] : "mpi", std::atof(argv[1]));
    convoy::barrier();
    std::printf("rank %d of %d\n", convoy::get_rank(), convoy::get_world_size());
    convoy::destroy_process_group();
  } catch (const convoy::Error& error) {
    std::fprintf(stderr, "convoy: error: %s\n", convoy::describe(error).c_str());
    return static_cast<int>(error.kind());
  }
}
