#include "kernels/cpu/isa.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "kernels/backends.h"
#include "kernels/base/error.h"
#include "kernels/cpu/isa_list.h"

namespace convoy::cpu {

const Isa& choose_isa(const char* wanted) {
  const bool any = !wanted || !*wanted;
  for (const Isa& candidate : isa_list()) {  // best first
    if (any ? candidate.supported && !candidate.by_name_only
            : std::strcmp(candidate.name, wanted) == 0) {
      CONVOY_CHECK(candidate.supported, "CONVOY_CPU_ISA: this machine has no {}", candidate.title);
      return candidate;
    }
  }
  CONVOY_FAIL(usage, "CONVOY_CPU_ISA: '{}' is unknown here, expected baseline{}", wanted,
              isa_list().size() > 1 ? ", avx2, avx512, avx512_bf16 or avx512_bf16_dot" : "");
}

const Isa& isa() {
  static const Isa& chosen = choose_isa(std::getenv("CONVOY_CPU_ISA"));
  return chosen;
}

std::string why_no_bf16() {
  if (isa().half) return {};
  const char* wanted = std::getenv("CONVOY_CPU_ISA");
  if (wanted && *wanted) {
    return fmt::format("AVX512_BF16 is needed, CONVOY_CPU_ISA allows {}", isa().title);
  }
  std::string found;
  for (const Isa& candidate : isa_list()) {
    if (!candidate.supported) continue;
    found += (found.empty() ? "" : ", ") + std::string(candidate.title);
  }
  return fmt::format("AVX512_BF16 is needed, this CPU has {}", found);
}

}  // namespace convoy::cpu
