// Winograd's transforms where x and y are bfloat16.
#include "kernels/cpu/vector/half_table.h"
#include "kernels/cpu/vector/winograd_loops.h"

namespace convoy::cpu::CONVOY_ISA {

CONVOY_WINOGRAD_LOOPS(Half16)

}  // namespace convoy::cpu::CONVOY_ISA
