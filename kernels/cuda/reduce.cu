// Sums over the middle axis of (outer, reduced, inner) and the reverse. A block holds `width`
// neighbours of inner in as many columns; its rows walk along the reduced axis and are added by a
// tree. Long axes are split over blocks, whose sums a second kernel adds in order.
#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/operands.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/shared.h"

namespace convoy::CONVOY_GPU {
namespace {

constexpr int kThreads = 256;

struct ReducePlan {
  ReduceShape shape;
  int width;            // columns of a block, a power of two
  std::int64_t tiles;   // of inner
  std::int64_t splits;  // of reduced
  std::int64_t length;  // of a split
};

ReducePlan plan_of(const ReduceShape& shape) {
  constexpr std::int64_t kRowsEach = 32, kMostSplits = 64;
  ReducePlan plan{shape, 1, 0, 0, 0};
  while (plan.width < 32 && plan.width < shape.inner) plan.width *= 2;
  plan.tiles = (shape.inner + plan.width - 1) / plan.width;
  const std::int64_t rows = kThreads / plan.width;
  plan.splits = std::clamp<std::int64_t>(shape.reduced / (rows * kRowsEach), 1, kMostSplits);
  plan.length = (shape.reduced + plan.splits - 1) / plan.splits;
  return plan;
}

struct ReduceMemory {
  double sums[kThreads];
};

// y has (splits, outer, inner) sums, each times `scale`.
template <class T, class Sum>
__global__ void __launch_bounds__(kThreads)
    reduce_kernel(ReducePlan plan, double scale, const T* x, Sum* y) {
  auto& memory = smem<ReduceMemory>();
  const ReduceShape& shape = plan.shape;
  std::int64_t block = blockIdx.x;
  const int column = threadIdx.x % plan.width, row = threadIdx.x / plan.width;
  const int rows = kThreads / plan.width;
  const std::int64_t inner = block % plan.tiles * plan.width + column;
  block /= plan.tiles;
  const std::int64_t outer = block % shape.outer, split = block / shape.outer;
  const std::int64_t end = std::min((split + 1) * plan.length, shape.reduced);
  double sum = 0;
  if (inner < shape.inner) {
    const T* from = x + outer * shape.reduced * shape.inner + inner;
    for (std::int64_t i = split * plan.length + row; i < end; i += rows) {
      sum += static_cast<Math<T>>(from[i * shape.inner]);
    }
  }
  memory.sums[threadIdx.x] = sum;
  for (int step = rows / 2; step > 0; step /= 2) {
    __syncthreads();
    if (row < step) memory.sums[threadIdx.x] += memory.sums[threadIdx.x + step * plan.width];
  }
  if (row == 0 && inner < shape.inner) {
    const double total = scale * memory.sums[threadIdx.x];
    y[(split * shape.outer + outer) * shape.inner + inner] =
        static_cast<Sum>(static_cast<Math<Sum>>(total));
  }
}

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    add_splits_kernel(std::int64_t splits, std::int64_t count, double scale, const double* partials,
                      T* y) {
  for_each_pack<1>({count, count}, [&](auto, std::int64_t i) {
    double sum = 0;
    for (std::int64_t split = 0; split < splits; ++split) sum += partials[split * count + i];
    y[i] = static_cast<T>(static_cast<Math<T>>(scale * sum));
  });
}

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    broadcast_kernel(ReduceShape shape, double scale, const T* x, T* y) {
  const std::int64_t count = shape.outer * shape.reduced * shape.inner;
  for_each_pack<1>({count, count}, [&](auto, std::int64_t i) {
    const std::int64_t outer = i / (shape.reduced * shape.inner), inner = i % shape.inner;
    const double value = static_cast<Math<T>>(x[outer * shape.inner + inner]);
    y[i] = static_cast<T>(static_cast<Math<T>>(scale * value));
  });
}

}  // namespace

void reduce_sum(Stream& stream, const ReduceShape& shape, double scale, ConstBuffer x, Buffer y) {
  check_plain("reduce_sum", {x, y});
  with_floating("reduce_sum", common_dtype("reduce_sum", {x, y}), [&]<class T>(T) {
    const std::int64_t count = shape.outer * shape.inner;
    if (count == 0) return;
    const ReducePlan plan = plan_of(shape);
    const LaunchConfig config{
        .grid = {static_cast<unsigned>(shape.outer * plan.tiles * plan.splits)},
        .block = {kThreads},
        .shared_bytes = sizeof(ReduceMemory),
        .stream = handle(stream)};
    if (plan.splits == 1) {
      return launch(reduce_kernel<T, T>, config, plan, scale, x.as<T>(), y.as<T>());
    }
    auto* partials = static_cast<double*>(stream.scratch(plan.splits * count * sizeof(double)));
    launch(reduce_kernel<T, double>, config, plan, 1.0, x.as<T>(), partials);
    launch(add_splits_kernel<T>, elementwise_config({count, count}, 1, handle(stream)), plan.splits,
           count, scale, partials, y.as<T>());
  });
}

void broadcast(Stream& stream, const ReduceShape& shape, double scale, ConstBuffer x, Buffer y) {
  check_plain("broadcast", {x, y});
  with_floating("broadcast", common_dtype("broadcast", {x, y}), [&]<class T>(T) {
    const std::int64_t count = shape.outer * shape.reduced * shape.inner;
    if (count == 0) return;
    launch(broadcast_kernel<T>, elementwise_config({count, count}, 1, handle(stream)), shape, scale,
           x.as<T>(), y.as<T>());
  });
}

}  // namespace convoy::CONVOY_GPU
