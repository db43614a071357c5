// The instruction set of this process's loops, chosen once at run time.
#pragma once

#include "kernels/cpu/vector/half_table.h"

namespace convoy::cpu {

/// An instruction set that the loops are compiled for.
struct Isa {
  const char* name;   ///< as CONVOY_CPU_ISA takes it: "avx512"
  const char* title;  ///< for people: "AVX-512"
  int block;          ///< channels in a block of its activation layout
  bool wide;          ///< whether a vector holds a whole block
  bool supported;     ///< by this machine
  const VectorTable* loops;
  const HalfTable* half;  ///< its loops over bfloat16; null where it has no instructions for that
  /// Whether products of bfloat16 are taken by its instructions for them, not as floats.
  bool half_products = false;
  bool by_name_only = false;  ///< this machine has something faster
};

/// The best instruction set of this machine, or the one that CONVOY_CPU_ISA (baseline, avx2,
/// avx512, avx512_bf16, avx512_bf16_dot) asks for; `usage` where the machine lacks it. Fixed at the
/// first call.
const Isa& isa();

/// The instruction set called `wanted`, or the best one of this machine where it is empty.
const Isa& choose_isa(const char* wanted);

/// The loops of isa().
inline const VectorTable& loops() {
  return *isa().loops;
}

/// The loops of isa() over bfloat16, where it has them.
inline const HalfTable& half_loops() {
  return *isa().half;
}

}  // namespace convoy::cpu
