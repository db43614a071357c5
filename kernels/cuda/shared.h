// Shared memory of a block, as one struct per kernel.
#pragma once

#include <cstddef>

#include "kernels/cuda/platform.h"

namespace convoy::CONVOY_GPU {

#ifdef __CUDACC__

/// The block's shared memory as `Storage`; the launch asks for sizeof(Storage) bytes. Its values
/// are undefined at the start of a block.
template <class Storage>
__device__ __forceinline__ Storage& smem() {
  extern __shared__ __align__(1024) std::byte convoy_shared_memory[];
  return *reinterpret_cast<Storage*>(convoy_shared_memory);
}

#else

template <class Storage>
Storage& smem() {
  static_assert(alignof(Storage) <= 1024);
  return *static_cast<Storage*>(emulator::shared_memory(sizeof(Storage)));
}

#endif

}  // namespace convoy::CONVOY_GPU
