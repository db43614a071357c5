// The instruction set of this process's loops, chosen once at run time.
#pragma once

#include "kernels/cpu/vector/table.h"

namespace convoy::cpu {

/// An instruction set that the loops are compiled for.
struct Isa {
  const char* name;   ///< as CONVOY_CPU_ISA takes it: "avx512"
  const char* title;  ///< for people: "AVX-512"
  int block;          ///< channels in a block of its activation layout
  bool wide;          ///< whether a vector holds a whole block
  bool supported;     ///< by this machine
  const VectorTable* loops;
};

/// The best instruction set of this machine, or the one that CONVOY_CPU_ISA (baseline, avx2,
/// avx512) asks for; `usage` where the machine lacks it. Fixed at the first call.
const Isa& isa();

/// The instruction set called `wanted`, or the best one of this machine where it is empty.
const Isa& choose_isa(const char* wanted);

/// The loops of isa().
inline const VectorTable& loops() {
  return *isa().loops;
}

}  // namespace convoy::cpu
