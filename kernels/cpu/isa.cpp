#include "kernels/cpu/isa.h"

#include <cstdlib>
#include <cstring>

#include "kernels/base/error.h"
#include "kernels/cpu/isa_list.h"

namespace convoy::cpu {

const Isa& choose_isa(const char* wanted) {
  const bool any = !wanted || !*wanted;
  for (const Isa& candidate : isa_list()) {  // best first
    if (any ? candidate.supported : std::strcmp(candidate.name, wanted) == 0) {
      CONVOY_CHECK(candidate.supported, "CONVOY_CPU_ISA: this machine has no {}", candidate.title);
      return candidate;
    }
  }
  CONVOY_FAIL(usage, "CONVOY_CPU_ISA: '{}' is unknown here, expected baseline{}", wanted,
              isa_list().size() > 1 ? ", avx2 or avx512" : "");
}

const Isa& isa() {
  static const Isa& chosen = choose_isa(std::getenv("CONVOY_CPU_ISA"));
  return chosen;
}

}  // namespace convoy::cpu
