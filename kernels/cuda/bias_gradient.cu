// Two kernels: blocks sum pieces of the rows (image, place) for 32 channels each, then one thread
// per channel adds the pieces in order.
#include "kernels/cuda/bias_gradient.h"

#include <algorithm>

#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/operands.h"
#include "kernels/cuda/precision.h"
#include "kernels/cuda/shared.h"
#include "kernels/cuda/strided.h"

namespace convoy::CONVOY_GPU {
namespace {

constexpr int kChannels = 32;  // of a block: its x
constexpr int kRows = 8;       // its y
constexpr int kFinalThreads = 128;

struct PieceStorage {
  double sums[kRows][kChannels];
};

// dy as rows x channels, whose row lies at image * image_stride + place * place_stride.
struct Rows {
  std::int64_t count, places, channels;
  std::int64_t image_stride, place_stride, channel_stride;
  std::int64_t piece;  // rows that a block sums
};

template <class T>
__device__ double sum_of_rows(const Rows& rows, std::int64_t channel, const T* dy) {
  using Sum = typename Precision<T>::Sum;
  double sum = 0;
  const std::int64_t first = blockIdx.y * rows.piece;
  for (std::int64_t i = threadIdx.y; i < rows.piece && first + i < rows.count; i += kRows) {
    const std::int64_t image = (first + i) / rows.places, place = (first + i) % rows.places;
    sum += static_cast<Sum>(
        dy[image * rows.image_stride + place * rows.place_stride + channel * rows.channel_stride]);
  }
  return sum;
}

template <class T>
__global__ void __launch_bounds__(kChannels* kRows)
    bias_pieces_kernel(Rows rows, const T* dy, double* pieces) {
  auto& shared = smem<PieceStorage>();
  const std::int64_t channel = std::int64_t{blockIdx.x} * kChannels + threadIdx.x;
  const bool mine = channel < rows.channels;
  shared.sums[threadIdx.y][threadIdx.x] = mine ? sum_of_rows(rows, channel, dy) : 0;
  __syncthreads();
  if (threadIdx.y != 0 || !mine) return;
  double sum = 0;
  for (int i = 0; i < kRows; ++i) sum += shared.sums[i][threadIdx.x];
  pieces[blockIdx.y * rows.channels + channel] = sum;
}

template <class Parameter>
__global__ void __launch_bounds__(kFinalThreads)
    bias_sum_kernel(int count, std::int64_t channels, const double* pieces, Parameter* db) {
  const std::int64_t channel = std::int64_t{blockIdx.x} * kFinalThreads + threadIdx.x;
  if (channel >= channels) return;
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += pieces[i * channels + channel];
  db[channel] = static_cast<Parameter>(sum);
}

Rows rows_of(const Shape& shape, LayoutId layout) {
  const Strided t = strided(layout, shape);
  Rows rows{t.a * t.h * t.w, t.h * t.w, t.b, t.stride_a, t.stride_w, t.stride_b, 0};
  constexpr std::int64_t kMostPieces = 128, kShortest = 64;
  rows.piece = std::max((rows.count + kMostPieces - 1) / kMostPieces, kShortest);
  return rows;
}

unsigned blocks(std::int64_t count, std::int64_t size) {
  return static_cast<unsigned>((count + size - 1) / size);
}

}  // namespace

void bias_gradient(Stream& stream, const Shape& shape, ConstBuffer dy, Buffer db) {
  const Rows rows = rows_of(shape, dy.layout);
  if (rows.channels == 0) return;
  const int count = static_cast<int>(blocks(rows.count, rows.piece));
  double* pieces = static_cast<double*>(stream.scratch(count * rows.channels * sizeof(double)));
  with_floating("bias_gradient", dy.dtype, [&]<class T>(T) {
    using Parameter = typename Precision<T>::Parameter;
    if (count > 0) {
      const LaunchConfig config = {
          .grid = dim3(blocks(rows.channels, kChannels), static_cast<unsigned>(count)),
          .block = dim3(kChannels, kRows),
          .shared_bytes = sizeof(PieceStorage),
          .stream = handle(stream)};
      launch(bias_pieces_kernel<T>, config, rows, dy.as<T>(), pieces);
    }
    const LaunchConfig config = {.grid = dim3(blocks(rows.channels, kFinalThreads)),
                                 .block = dim3(kFinalThreads),
                                 .shared_bytes = 0,
                                 .stream = handle(stream)};
    launch(bias_sum_kernel<Parameter>, config, count, rows.channels, pieces, db.as<Parameter>());
  });
}

}  // namespace convoy::CONVOY_GPU
