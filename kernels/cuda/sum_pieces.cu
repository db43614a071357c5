#include "kernels/cuda/sum_pieces.h"

#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/vector.h"

namespace convoy::CONVOY_GPU {
namespace {

constexpr int kThreads = 128;

// total += `kCount` pieces, all of which are on their way at once.
template <int kCount>
__device__ __forceinline__ void add_pieces(const float* at, std::int64_t values,
                                           Vector<float, 4>& total) {
  Vector<float, 4> next[kCount];
  CONVOY_UNROLL
  for (int piece = 0; piece < kCount; ++piece) next[piece] = load_vector<4>(at + piece * values);
  CONVOY_UNROLL
  for (int piece = 0; piece < kCount; ++piece) {
    CONVOY_UNROLL
    for (int i = 0; i < 4; ++i) total[i] += next[piece][i];
  }
}

__global__ void __launch_bounds__(kThreads)
    sum_pieces_kernel(int count, std::int64_t values, const float* pieces, float* sum,
                      FilterRows rows) {
  constexpr int kInFlight = 8;
  const unsigned vector = blockIdx.x * kThreads + threadIdx.x;
  const std::int64_t first = std::int64_t{vector} * 4;
  if (first >= values) return;
  Vector<float, 4> total = load_vector<4>(pieces + first);
  int piece = 1;
  for (; piece + kInFlight <= count; piece += kInFlight) {
    add_pieces<kInFlight>(pieces + piece * values + first, values, total);
  }
  for (; piece < count; ++piece) add_pieces<1>(pieces + piece * values + first, values, total);
  // Taps of zero are read too: they lie in the same sectors.
  const unsigned row = vector / rows.padded, tap = vector - row * rows.padded - rows.lead;
  if (tap >= static_cast<unsigned>(rows.taps)) return;
  store_vector(sum + (std::int64_t{row} * rows.taps + tap) * 4, total);
}

}  // namespace

void sum_pieces(Stream& stream, int count, std::int64_t values, const float* pieces, float* sum,
                const FilterRows& rows) {
  constexpr std::int64_t kPerBlock = kThreads * 4;
  const LaunchConfig config = {
      .grid = dim3(static_cast<unsigned>((values + kPerBlock - 1) / kPerBlock)),
      .block = dim3(kThreads),
      .shared_bytes = 0,
      .stream = handle(stream)};
  launch(sum_pieces_kernel, config, count, values, pieces, sum, rows);
}

}  // namespace convoy::CONVOY_GPU
