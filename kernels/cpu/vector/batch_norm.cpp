// Batch norm of a run of floats.
#include "kernels/cpu/vector/batch_norm_loops.h"

namespace convoy::cpu::CONVOY_ISA {

CONVOY_BATCH_NORM_LOOPS(float)

}  // namespace convoy::cpu::CONVOY_ISA
