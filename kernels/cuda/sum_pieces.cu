#include "kernels/cuda/sum_pieces.h"

#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/vector.h"

namespace convoy::CONVOY_GPU {
namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads)
    sum_pieces_kernel(int count, std::int64_t values, const float* pieces, float* sum) {
  const std::int64_t first = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * 4;
  if (first >= values) return;
  Vector<float, 4> total = load_vector<4>(pieces + first);
  for (int piece = 1; piece < count; ++piece) {
    const Vector<float, 4> next = load_vector<4>(pieces + piece * values + first);
    CONVOY_UNROLL
    for (int i = 0; i < 4; ++i) total[i] += next[i];
  }
  store_vector(sum + first, total);
}

}  // namespace

void sum_pieces(Stream& stream, int count, std::int64_t values, const float* pieces, float* sum) {
  constexpr std::int64_t kPerBlock = kThreads * 4;
  const LaunchConfig config = {
      .grid = dim3(static_cast<unsigned>((values + kPerBlock - 1) / kPerBlock)),
      .block = dim3(kThreads),
      .shared_bytes = 0,
      .stream = handle(stream)};
  launch(sum_pieces_kernel, config, count, values, pieces, sum);
}

}  // namespace convoy::CONVOY_GPU
