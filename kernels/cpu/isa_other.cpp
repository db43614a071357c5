// Machines other than x86-64: what the compiler makes of the loops by default.
#include "kernels/cpu/isa_list.h"

namespace convoy::cpu {

std::span<const Isa> isa_list() {
  static const Isa list[] = {
      {"baseline", "portable vectors", 8, false, true, &baseline::vector_table, nullptr}};
  return list;
}

}  // namespace convoy::cpu
