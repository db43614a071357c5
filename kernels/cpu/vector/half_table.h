// The loops over bfloat16 in memory, for machines with instructions for it (AVX512_BF16). They
// compute as those of table.h do, in float and double, and round what they write to nearest, ties
// to even. Denormal results become zero.
#pragma once

#include "kernels/cpu/vector/table.h"

namespace convoy::cpu {

/// The bits of a bfloat16: the upper half of a float's.
using Half16 = std::uint16_t;

// CONVOY_HALF(return type, name, (arguments)): as the loops of these names over floats; widen and
// narrow change the type.
#define CONVOY_HALF_LIST(CONVOY_HALF)                                                              \
  CONVOY_HALF(void, widen, (std::int64_t count, const Half16* x, float* y))                        \
  CONVOY_HALF(void, narrow, (std::int64_t count, const float* x, Half16* y))                       \
  CONVOY_HALF(                                                                                     \
      void, to_blocks,                                                                             \
      (const Half16* x, std::int64_t channels, std::int64_t spatial, int block, Half16* y))        \
  CONVOY_HALF(                                                                                     \
      void, from_blocks,                                                                           \
      (const Half16* x, std::int64_t channels, std::int64_t spatial, int block, Half16* y))        \
  CONVOY_HALF(void, batch_norm_statistics,                                                         \
              (const Half16* x, std::int64_t count, int period, double* mean, double* m2))         \
  CONVOY_HALF(void, batch_norm_apply,                                                              \
              (const Half16* x, const Half16* residual, std::int64_t count, const float* mean,     \
               const float* scale, const float* shift, bool relu, Half16* y, std::uint16_t* bits)) \
  CONVOY_HALF(void, batch_norm_reduce,                                                             \
              (const Half16* x, const BatchNormPassedOf<Half16>& passed, std::int64_t count,       \
               int period, const double* mean, double* sum_dz, double* sum_dz_x))                  \
  CONVOY_HALF(void, batch_norm_gradient,                                                           \
              (const Half16* x, const BatchNormPassedOf<Half16>& passed, std::int64_t count,       \
               const BatchNormGradient& factors, Half16* dx, Half16* dresidual))                   \
  CONVOY_HALF(void, winograd_input,                                                                \
              (const WinogradTiles& geometry, std::int64_t block, const Half16* x, float* tiles,   \
               std::int64_t stride))                                                               \
  CONVOY_HALF(void, winograd_output,                                                               \
              (const WinogradTiles& geometry, std::int64_t block, const float* tiles,              \
               std::int64_t stride, Half16* y))                                                    \
  CONVOY_HALF(void, winograd_output_gradient,                                                      \
              (const WinogradTiles& geometry, std::int64_t block, const Half16* dy, float* tiles,  \
               std::int64_t stride))

/// The loops of one instruction set.
struct HalfTable {
#define CONVOY_MEMBER(result, name, arguments) result(*name) arguments;
  CONVOY_HALF_LIST(CONVOY_MEMBER)
#undef CONVOY_MEMBER
};

namespace avx512_bf16 {
CONVOY_HALF_LIST(CONVOY_DECLARE_VECTOR)
extern const HalfTable half_table;
}  // namespace avx512_bf16

}  // namespace convoy::cpu
