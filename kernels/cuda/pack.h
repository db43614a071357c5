// Elementwise work: several neighbouring values at once, in the type that is computed in, and the
// loop over a whole buffer in vectors of 16 bytes with single values at its end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "kernels/base/bf16.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/vector.h"

namespace convoy::CONVOY_GPU {

template <class T>
struct MathOf {
  using Type = T;
};
template <>
struct MathOf<Bf16> {
  using Type = float;
};

/// The type in which values stored as T are computed: float for bf16.
template <class T>
using Math = typename MathOf<T>::Type;

/// Values of T that fill a vector of 16 bytes.
template <class T>
inline constexpr int kLanes = 16 / int(sizeof(T));

/// N values in registers.
template <class T, int N>
struct Pack {
  T v[N];
  CONVOY_HOST_DEVICE T& operator[](int i) { return v[i]; }
  CONVOY_HOST_DEVICE const T& operator[](int i) const { return v[i]; }
};

/// Reads N values at `from`, which is aligned to their size in bytes.
template <int N, class T>
__device__ __forceinline__ Pack<Math<T>, N> load_pack(const T* from) {
  const Vector<T, N> stored = load_vector<N>(from);
  Pack<Math<T>, N> values;
  CONVOY_UNROLL
  for (int i = 0; i < N; ++i) values[i] = static_cast<Math<T>>(stored[i]);
  return values;
}

/// Writes N values to `to`, which is aligned to their size in bytes.
template <class T, int N>
__device__ __forceinline__ void store_pack(T* to, const Pack<Math<T>, N>& values) {
  Vector<T, N> stored;
  CONVOY_UNROLL
  for (int i = 0; i < N; ++i) stored[i] = static_cast<T>(values[i]);
  store_vector(to, stored);
}

/// How a buffer is walked: `vectors` times N values, then one by one up to `count`.
struct Span {
  std::int64_t count;
  std::int64_t vectors;
};

inline bool is_aligned(const void* pointer, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

/// The span of `count` values by N; without vectors where one of `operands` is not aligned to
/// `bytes`.
inline Span span_of(std::int64_t count, int n, std::size_t bytes,
                    std::initializer_list<const void*> operands) {
  const bool aligned = std::all_of(operands.begin(), operands.end(),
                                   [&](const void* pointer) { return is_aligned(pointer, bytes); });
  return {count, aligned ? count / n : 0};
}

inline constexpr int kElementwiseThreads = 256;

/// The grid of an elementwise kernel over `span`; its blocks walk on where it has more work.
inline LaunchConfig elementwise_config(const Span& span, int n, cudaStream_t stream) {
  constexpr std::int64_t kMostBlocks = 8192;
  const std::int64_t steps = std::max(span.vectors, span.count - span.vectors * n);
  const std::int64_t blocks = (steps + kElementwiseThreads - 1) / kElementwiseThreads;
  return {.grid = {static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, kMostBlocks))},
          .block = {kElementwiseThreads},
          .stream = stream};
}

template <int N>
struct Width {};

/// Calls `body(Width<N>, i)` for each vector that starts at value i, and `body(Width<1>, i)` for
/// each value behind them, shared out over the grid.
template <int N, class Body>
__device__ __forceinline__ void for_each_pack(const Span& span, Body body) {
  const std::int64_t first = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t threads = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = first; i < span.vectors; i += threads) body(Width<N>(), i * N);
  for (std::int64_t i = span.vectors * N + first; i < span.count; i += threads) {
    body(Width<1>(), i);
  }
}

}  // namespace convoy::CONVOY_GPU
