// The instruction sets of this build; one source per kind of machine.
#pragma once

#include <span>

#include "kernels/cpu/isa.h"

namespace convoy::cpu {

/// All instruction sets that this build has loops for, the best first. The last one always works.
std::span<const Isa> isa_list();

}  // namespace convoy::cpu
