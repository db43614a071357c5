#include "kernels/cpu/isa_list.h"

namespace convoy::cpu {
namespace {

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool has_avx512_bf16() {
  return has_avx512() && __builtin_cpu_supports("avx512bf16");
}

// VDPBF16PS makes twice as many products a cycle as an FMA of floats on AMD's cores. On Intel's it
// makes half as many (measured: 90 against 180 GFLOP/s): those leave such products to AMX.
bool has_fast_dot() {
  return has_avx512_bf16() && __builtin_cpu_is("amd");
}

}  // namespace

std::span<const Isa> isa_list() {
  static const Isa list[] = {
      {"avx512_bf16_dot", "AVX-512 with bf16 products", 16, true, has_avx512_bf16(),
       &avx512::vector_table, &avx512_bf16::half_table, true, !has_fast_dot()},
      {"avx512_bf16", "AVX-512 with bf16", 16, true, has_avx512_bf16(), &avx512::vector_table,
       &avx512_bf16::half_table},
      {"avx512", "AVX-512", 16, true, has_avx512(), &avx512::vector_table, nullptr},
      {"avx2", "AVX2", 8, true, has_avx2(), &avx2::vector_table, nullptr},
      {"baseline", "SSE2", 8, false, true, &baseline::vector_table, nullptr},
  };
  return list;
}

}  // namespace convoy::cpu
