// In which types sums over activations are taken, for each type of stored values.
#pragma once

#include "kernels/cuda/pack.h"

namespace convoy::CONVOY_GPU {

/// What one thread adds up in, a bounded number of terms; threads are added in double. f32 sums in
/// double from the start, so that --precision fp32 equals other devices to the last digits: a GPU
/// has the rate for that next to 4 bytes of memory per value, but not next to 2.
template <class T>
struct SumType {
  using Type = double;
};
template <>
struct SumType<Bf16> {
  using Type = float;
};
template <class T>
using SumOf = typename SumType<T>::Type;

/// A stored value as a number to compute with.
template <class T>
__device__ __forceinline__ Math<T> to_math(T value) {
  return static_cast<Math<T>>(value);
}

/// Calls use.operator()<T, width>() for activations of `dtype`, taken in vectors of 16 bytes along
/// channels or, with width 1, one by one.
template <class Use>
void with_width(DType dtype, int width, Use use) {
  const bool vectors = width > 1;
  if (dtype == DType::f64) return use.template operator()<double, 1>();
  if (dtype == DType::bf16) {
    return vectors ? use.template operator()<Bf16, 8>() : use.template operator()<Bf16, 1>();
  }
  return vectors ? use.template operator()<float, 4>() : use.template operator()<float, 1>();
}

}  // namespace convoy::CONVOY_GPU
