// mpi.h without its old C++ classes, and the check of what its functions return.
#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <string>

#include "kernels/base/error.h"

namespace convoy {

/// MPI's own words for a code that one of its functions returned.
std::string mpi_error_text(int code);

}  // namespace convoy

/// `communication` with MPI's text unless the call succeeds. Communicators of ours return errors.
#define CONVOY_MPI(call)                                                            \
  do {                                                                              \
    const int convoy_mpi_code = (call);                                             \
    if (convoy_mpi_code != MPI_SUCCESS)                                             \
      CONVOY_FAIL(communication, "{}: {}", #call, mpi_error_text(convoy_mpi_code)); \
  } while (false)
