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

}  // namespace

std::span<const Isa> isa_list() {
  static const Isa list[] = {
      {"avx512_bf16", "AVX-512 with bf16", 16, true, has_avx512_bf16(), &avx512::vector_table,
       &avx512_bf16::half_table},
      {"avx512", "AVX-512", 16, true, has_avx512(), &avx512::vector_table, nullptr},
      {"avx2", "AVX2", 8, true, has_avx2(), &avx2::vector_table, nullptr},
      {"baseline", "SSE2", 8, false, true, &baseline::vector_table, nullptr},
  };
  return list;
}

}  // namespace convoy::cpu
