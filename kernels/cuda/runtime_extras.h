// What the emulated runtime tells beyond CUDA's calls; on a GPU nothing.
#pragma once

#include <string>

#include "kernels/cuda/platform.h"

namespace convoy::CONVOY_GPU {

/// What was wrong in the thread's last call that failed, or with the kernel that broke its device.
std::string failure_detail();

/// Each block of a memory pool must be an allocation of its own, so that accesses outside of it
/// are seen.
bool wants_whole_blocks();

/// Copies from the memory of device `peer` to that of `device`, the thread's own, go straight from
/// now on where the machine has a way; other accesses stay forbidden on emulated devices.
void reach_peer(int device, int peer);

}  // namespace convoy::CONVOY_GPU
