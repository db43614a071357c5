// How the threads of a parallel loop wait for each other at its end.
#pragma once

namespace convoy::cli {

/// Has OpenMP's threads spin only briefly before they sleep, unless the user has said otherwise by
/// OMP_WAIT_POLICY or GOMP_SPINCOUNT. Starts the program again, since libgomp reads its settings
/// when it is loaded; returns where that is not needed or not possible.
void prefer_short_spins(char** arguments);

}  // namespace convoy::cli
