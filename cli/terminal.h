// Whether people read along.
#pragma once

namespace convoy::cli {

/// Whether `descriptor` is a terminal of the user. The one that mpirun gives to each rank for
/// stdout is none: what comes out of it may go to a file.
bool is_terminal(int descriptor);

}  // namespace convoy::cli
