// Several neighbouring values at once: one load or store instruction of up to 16 bytes.
#pragma once

#include <cstring>

#include "kernels/cuda/platform.h"

namespace convoy::CONVOY_GPU {

/// N values of T side by side; sizeof is 1, 2, 4, 8 or 16 bytes.
template <class T, int N>
struct alignas(sizeof(T) * N) Vector {
  static_assert(sizeof(T) * N <= 16 && (sizeof(T) * N & (sizeof(T) * N - 1)) == 0);
  T v[N];
  CONVOY_HOST_DEVICE T& operator[](int i) { return v[i]; }
  CONVOY_HOST_DEVICE const T& operator[](int i) const { return v[i]; }
};

namespace words {

// An integer or vector type that a compiler moves in one piece: gcc would split a struct of floats
// into single loads, which a check of alignment or coalescing would then see.
#ifdef __CUDACC__
template <int Bytes>
struct Of;
template <>
struct Of<16> {
  using Type = uint4;
};
template <>
struct Of<8> {
  using Type = uint2;
};
#else
template <int Bytes>
struct Of {
  using Type [[gnu::vector_size(Bytes), gnu::may_alias]] = unsigned;
};
#endif
template <>
struct Of<4> {
  using Type = unsigned;
};
template <>
struct Of<2> {
  using Type = unsigned short;
};
template <>
struct Of<1> {
  using Type = unsigned char;
};

}  // namespace words

/// Reads N values at `from`, which is aligned to their size in bytes.
template <int N, class T>
__device__ __forceinline__ Vector<T, N> load_vector(const T* from) {
  using Word = typename words::Of<sizeof(T) * N>::Type;
  const Word word = *reinterpret_cast<const Word*>(from);
  Vector<T, N> values;
  memcpy(&values, &word, sizeof values);
  return values;
}

/// Writes N values to `to`, which is aligned to their size in bytes.
template <class T, int N>
__device__ __forceinline__ void store_vector(T* to, const Vector<T, N>& values) {
  using Word = typename words::Of<sizeof(T) * N>::Type;
  Word word;
  memcpy(&word, &values, sizeof word);
  *reinterpret_cast<Word*>(to) = word;
}

}  // namespace convoy::CONVOY_GPU
