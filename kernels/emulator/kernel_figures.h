// Figures of how each kernel uses memory; the checks count them in programs that are built with
// them (see checks/).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy::emulator {

/// One load or store instruction of a kernel, over the blocks that were looked at.
struct SiteFigures {
  std::string place;  ///< "conv2d.cu:120"
  bool is_shared = false;
  bool is_write = false;
  std::uint64_t requests = 0;  ///< of warps
  std::uint64_t bytes = 0;
  std::uint64_t actual = 0;  ///< wavefronts of shared memory, 32-byte sectors of global memory
  std::uint64_t ideal = 0;   ///< the least that move these bytes
};

/// All launches of a kernel since start_kernel_figures().
struct KernelFigures {
  std::string kernel;
  std::uint64_t launches = 0;
  std::uint64_t blocks = 0;
  /// Bytes of global memory that its threads asked for, and different bytes among them, by launch.
  std::uint64_t bytes_read = 0, bytes_written = 0;
  std::uint64_t compulsory_read = 0, compulsory_written = 0;
  /// Over a sample of two blocks of each launch.
  std::uint64_t sampled_blocks = 0;
  std::vector<SiteFigures> sites;
};

/// Whether this program was built with the checks.
bool has_kernel_figures();
/// Counts from now on; `usage` without the checks.
void start_kernel_figures();
/// What was counted, by kernel; ends counting.
std::vector<KernelFigures> take_kernel_figures();

}  // namespace convoy::emulator
