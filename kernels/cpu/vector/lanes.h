// A row of 16 floats as vectors of the instruction set's own width, for the files of this folder
// only. Sums over rows have the same order on every instruction set, so their bits agree. In memory
// the numbers are floats or, where there are instructions for them, bfloat16.
#pragma once

#include "kernels/cpu/vector/table.h"

#if defined(__AVX__)
#include <immintrin.h>
#endif

#if !defined(CONVOY_ISA) || !defined(CONVOY_LANES)
#error "CONVOY_ISA (a namespace) and CONVOY_LANES (floats per vector) come from the build"
#endif

namespace convoy::cpu::CONVOY_ISA {
namespace {  // internal linkage: no copy may be shared with another instruction set

inline constexpr int kVectors = kRowLanes / CONVOY_LANES;
typedef float Vector __attribute__((vector_size(4 * CONVOY_LANES)));

// Half a vector of floats, and as many doubles: a whole vector.
typedef float Half __attribute__((vector_size(2 * CONVOY_LANES)));
typedef double Wide __attribute__((vector_size(4 * CONVOY_LANES)));
typedef int VectorInts __attribute__((vector_size(4 * CONVOY_LANES)));
typedef int HalfInts __attribute__((vector_size(2 * CONVOY_LANES)));
inline constexpr int kHalfLanes = CONVOY_LANES / 2;
inline constexpr int kWides = kRowLanes / kHalfLanes;

#define CONVOY_INLINE inline __attribute__((always_inline))
#define CONVOY_EACH for (int i = 0; i < kVectors; ++i)

/// 16 floats.
struct Row {
  Vector v[kVectors];
};

CONVOY_INLINE Row load(const float* p) {
  Row row;
  CONVOY_EACH __builtin_memcpy(&row.v[i], p + i * CONVOY_LANES, sizeof(Vector));
  return row;
}

CONVOY_INLINE void store(float* p, const Row& row) {
  CONVOY_EACH __builtin_memcpy(p + i * CONVOY_LANES, &row.v[i], sizeof(Vector));
}

CONVOY_INLINE Row splat(float value) {
  Row row;
  CONVOY_EACH row.v[i] = Vector{} + value;
  return row;
}

CONVOY_INLINE Row operator+(const Row& a, const Row& b) {
  Row row;
  CONVOY_EACH row.v[i] = a.v[i] + b.v[i];
  return row;
}

CONVOY_INLINE Row operator-(const Row& a, const Row& b) {
  Row row;
  CONVOY_EACH row.v[i] = a.v[i] - b.v[i];
  return row;
}

CONVOY_INLINE Row operator*(const Row& a, const Row& b) {
  Row row;
  CONVOY_EACH row.v[i] = a.v[i] * b.v[i];
  return row;
}

/// x < 0 ? 0 : x, which keeps NaN.
CONVOY_INLINE Row rectify(const Row& x) {
  Row row;
  CONVOY_EACH row.v[i] = x.v[i] < Vector{} ? Vector{} : x.v[i];
  return row;
}

/// y <= 0 ? 0 : dy, the gradient of rectify by its result.
CONVOY_INLINE Row mask(const Row& y, const Row& dy) {
  Row row;
  CONVOY_EACH row.v[i] = y.v[i] <= Vector{} ? Vector{} : dy.v[i];
  return row;
}

/// One bit a lane, from the lowest up: where rectify(x) lets a gradient pass, as mask() has it.
CONVOY_INLINE std::uint16_t passing(const Row& x) {
  unsigned bits = 0;
  CONVOY_EACH {
#if defined(__AVX512F__)
    const unsigned part = _mm512_cmp_ps_mask((__m512)x.v[i], _mm512_setzero_ps(), _CMP_NLE_UQ);
#elif defined(__AVX__)
    const auto part = static_cast<unsigned>(
        _mm256_movemask_ps(_mm256_cmp_ps((__m256)x.v[i], _mm256_setzero_ps(), _CMP_NLE_UQ)));
#else
    unsigned part = 0;
    for (int l = 0; l < CONVOY_LANES; ++l) part |= unsigned{!(x.v[i][l] <= 0)} << l;
#endif
    bits |= part << (i * CONVOY_LANES);
  }
  return static_cast<std::uint16_t>(bits);
}

/// The lanes of `values` whose bit is set, from the lowest up; 0 elsewhere.
template <class Ints, class Floats>
CONVOY_INLINE Floats keep_lanes(unsigned bits, const Floats& values) {
  Ints lane;
  for (unsigned l = 0; l < sizeof(Ints) / sizeof(int); ++l) lane[l] = 1 << l;
  const Ints kept = (lane & (Ints{} + static_cast<int>(bits))) != Ints{};
  return (Floats)((Ints)values & kept);
}

CONVOY_INLINE Row keep(unsigned bits, const Row& values) {
  Row row;
  CONVOY_EACH row.v[i] = keep_lanes<VectorInts>(bits >> (i * CONVOY_LANES), values.v[i]);
  return row;
}

/// 16 doubles.
struct WideRow {
  Wide v[kWides];
};

CONVOY_INLINE Half load_half(const float* p) {
  Half half;
  __builtin_memcpy(&half, p, sizeof half);
  return half;
}

CONVOY_INLINE Half keep(unsigned bits, const Half& values) {
  return keep_lanes<HalfInts>(bits, values);
}

CONVOY_INLINE Wide widen(const Half& half) {
#if defined(__AVX512F__)
  // Of a conversion between vectors of different size the compiler makes two.
  return (Wide)_mm512_maskz_cvtps_pd(0xff, (__m256)half);
#else
  return __builtin_convertvector(half, Wide);
#endif
}

CONVOY_INLINE WideRow widen(const float* p) {
  WideRow row;
  for (int i = 0; i < kWides; ++i) row.v[i] = widen(load_half(p + i * kHalfLanes));
  return row;
}

CONVOY_INLINE WideRow widen(const Row& row) {
  float lanes[kRowLanes];
  store(lanes, row);
  return widen(lanes);
}

CONVOY_INLINE float to_float(float x) {
  return x;
}

CONVOY_INLINE void store(float* p, float x) {
  *p = x;
}

#if defined(__AVX512BF16__)
CONVOY_INLINE float to_float(std::uint16_t x) {
  const std::uint32_t word = std::uint32_t{x} << 16;
  float result;
  __builtin_memcpy(&result, &word, sizeof result);
  return result;
}

CONVOY_INLINE void store(std::uint16_t* p, float x) {
  const __m128bh half = _mm_cvtneps_pbh(_mm_set_ss(x));
  __builtin_memcpy(p, &half, sizeof *p);
}

CONVOY_INLINE Row load(const std::uint16_t* p) {
  __m256i half;
  __builtin_memcpy(&half, p, sizeof half);
  const auto words = (VectorInts)_mm512_maskz_cvtepu16_epi32(0xffff, half);
  return {{(Vector)(words << 16)}};
}

CONVOY_INLINE void store(std::uint16_t* p, const Row& row) {
  const __m256bh half = _mm512_cvtneps_pbh((__m512)row.v[0]);
  __builtin_memcpy(p, &half, sizeof half);
}

#endif

}  // namespace
}  // namespace convoy::cpu::CONVOY_ISA
