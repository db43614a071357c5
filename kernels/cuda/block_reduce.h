// Sums and other reductions over a warp or a block, by trees of shuffles: the order is fixed, so
// the bits are too. Blocks are one-dimensional here and consist of whole warps; all their threads
// call.
#pragma once

#include <cstring>
#include <type_traits>

#include "kernels/cuda/platform.h"

namespace convoy::CONVOY_GPU {

inline constexpr int kWarp = 32;
inline constexpr unsigned kWholeWarp = 0xffffffffu;

/// Combines by addition.
struct Add {
  template <class T>
  CONVOY_HOST_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};

/// `value` of the lane `offset` further up (the own one past lane 31). T is a number, or a struct
/// whose size is a multiple of 8.
template <class T>
__device__ __forceinline__ T shuffle_down(T value, int offset) {
  if constexpr (std::is_arithmetic_v<T>) {
    return __shfl_down_sync(kWholeWarp, value, offset);
  } else {
    static_assert(sizeof(T) % sizeof(double) == 0 && std::is_trivially_copyable_v<T>);
    constexpr int kWords = sizeof(T) / sizeof(double);
    double words[kWords];
    memcpy(words, &value, sizeof value);
    CONVOY_UNROLL
    for (int i = 0; i < kWords; ++i) words[i] = __shfl_down_sync(kWholeWarp, words[i], offset);
    memcpy(&value, words, sizeof value);
    return value;
  }
}

/// All values of the first `lanes` lanes, combined; the result is lane 0's.
template <class T, class Combine = Add>
__device__ __forceinline__ T warp_reduce(T value, Combine combine = {}, int lanes = kWarp) {
  const int lane = threadIdx.x % kWarp;
  CONVOY_UNROLL
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const T other = shuffle_down(value, offset);
    if (lane + offset < lanes) value = combine(value, other);
  }
  return value;
}

/// Shared memory of block_reduce() for blocks of `Threads`; part of the kernel's struct.
template <class T, int Threads>
struct ReduceSlots {
  static_assert(Threads % kWarp == 0 && Threads <= kWarp * kWarp);
  T of_warp[Threads / kWarp];
};

/// All threads' values, combined; the result is thread 0's. `slots` may be used again at once.
template <class T, int Threads, class Combine = Add>
__device__ __forceinline__ T block_reduce(ReduceSlots<T, Threads>& slots, T value,
                                          Combine combine = {}) {
  constexpr int kWarps = Threads / kWarp;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  value = warp_reduce(value, combine);
  __syncthreads();  // an earlier call's readers are done
  if (lane == 0) slots.of_warp[warp] = value;
  __syncthreads();
  if (warp == 0) {
    if (lane < kWarps) value = slots.of_warp[lane];
    value = warp_reduce(value, combine, kWarps);
  }
  return value;
}

/// The same, with the result in all threads.
template <class T, int Threads, class Combine = Add>
__device__ __forceinline__ T block_reduce_all(ReduceSlots<T, Threads>& slots, T value,
                                              Combine combine = {}) {
  value = block_reduce(slots, value, combine);
  if (threadIdx.x == 0) slots.of_warp[0] = value;
  __syncthreads();
  return slots.of_warp[0];
}

}  // namespace convoy::CONVOY_GPU
