// The library that this build computes convolutions and matrix products with: one source per
// library, of which the build takes one.
#pragma once

#include <string>

namespace convoy::cpu {

/// Prepares the library for the instruction set of isa(), once; `usage` where the library found at
/// run time is not the one that was built against.
void open_library();

/// "oneDNN 3.2.0", "OpenBLAS", "own matrix products".
std::string library_name();

}  // namespace convoy::cpu
