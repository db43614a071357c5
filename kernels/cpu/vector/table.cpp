// The table of this instruction set's loops.
#include "kernels/cpu/vector/table.h"

namespace convoy::cpu::CONVOY_ISA {

#define CONVOY_INITIALISER(result, name, arguments) &name,
const VectorTable vector_table = {CONVOY_VECTOR_LIST(CONVOY_INITIALISER)};
#undef CONVOY_INITIALISER

}  // namespace convoy::cpu::CONVOY_ISA
