// A tiny kernel for each instruction in ptx.h, so that models and hardware can be held against each
// other and against the documented layouts. Operands are words of memory in the order of lanes.
#pragma once

#include "kernels/base/buffer.h"
#include "kernels/base/stream.h"
#include "kernels/cuda/platform.h"

namespace convoy::CONVOY_GPU {

enum class PtxWrapper {
  copy_16,   ///< in: 32 x 16 bytes; out: the same, zeros from lanes 0, 3, ...; then first words
  copy_8,    ///< in: 32 x 8 bytes
  copy_4,    ///< in: 32 x 4 bytes
  ldmatrix,  ///< in: 64 rows of 4 words; out: [2][register][lane], see ldmatrix_row()
  ldmatrix_transposed,  ///< the same
  to_tf32,              ///< in: 64 words; out: 64 words
  mma_bf16,             ///< in: d [2][2][2][4][lane], a [2][4][lane], b [2][4][lane]; out: d
  mma_tf32,             ///< the same
};

struct ConformanceSizes {
  int in, out;  ///< words
};
ConformanceSizes conformance_sizes(PtxWrapper wrapper);

/// Which row of `in` lane `lane` gives to load `load` of the two.
CONVOY_HOST_DEVICE inline int ldmatrix_row(int load, int lane) {
  return load == 0 ? (lane * 5 + 3) % 32 : 32 + (lane * 11 + 7) % 32;
}

/// Queues the kernel of `wrapper` over device memory, aligned to 16 bytes.
void run_conformance(Stream& stream, PtxWrapper wrapper, ConstBuffer in, Buffer out);

}  // namespace convoy::CONVOY_GPU
