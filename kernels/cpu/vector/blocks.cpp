// Transposes of floats to channel blocks and back.
#include "kernels/cpu/vector/block_loops.h"

namespace convoy::cpu::CONVOY_ISA {

CONVOY_BLOCK_LOOPS(float)

}  // namespace convoy::cpu::CONVOY_ISA
