// Mean squared error with its gradient in one pass: sums of blocks in double, which a second kernel
// adds in a fixed order.
#include "kernels/cuda/block_reduce.h"
#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/operands.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/shared.h"

namespace convoy::CONVOY_GPU {
namespace {

struct SumMemory {
  ReduceSlots<double, kElementwiseThreads> slots;
};

// dx may be null; partials has a value for each block.
template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    mse_kernel(Span span, double scale, const T* x, const T* target, T* dx, double* partials) {
  auto& memory = smem<SumMemory>();
  double sum = 0;
  for_each_pack<kLanes<T>>(span, [&]<int N>(Width<N>, std::int64_t i) {
    const auto xs = load_pack<N>(x + i), targets = load_pack<N>(target + i);
    Pack<Math<T>, N> dxs;
    CONVOY_UNROLL
    for (int lane = 0; lane < N; ++lane) {
      const double difference = double(xs[lane]) - double(targets[lane]);
      sum += difference * difference;
      dxs[lane] = static_cast<Math<T>>(2 * scale * difference);
    }
    if (dx) store_pack(dx + i, dxs);
  });
  sum = block_reduce(memory.slots, sum);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    mse_total_kernel(int count, double scale, const double* partials, T* loss) {
  auto& memory = smem<SumMemory>();
  double sum = 0;
  for (int i = threadIdx.x; i < count; i += kElementwiseThreads) sum += partials[i];
  sum = block_reduce(memory.slots, sum);
  if (threadIdx.x == 0) *loss = static_cast<T>(sum * scale);
}

}  // namespace

void mse(Stream& stream, std::int64_t count, double scale, ConstBuffer x, ConstBuffer target,
         Buffer loss, Buffer dx) {
  constexpr unsigned kMostBlocks = 1024;
  check_plain("mse", {x, target, loss, dx});
  with_full("mse", common_dtype("mse", {loss}), [&]<class L>(L) {
    with_floating("mse", common_dtype("mse", {x, target, dx}), [&]<class T>(T) {
      const Span span = span_of(count, kLanes<T>, 16, {x.data, target.data, dx.data});
      LaunchConfig config = elementwise_config(span, kLanes<T>, handle(stream));
      config.grid.x = std::min(config.grid.x, kMostBlocks);
      config.shared_bytes = sizeof(SumMemory);
      const int blocks = static_cast<int>(config.grid.x);
      auto* partials = static_cast<double*>(stream.scratch(blocks * sizeof(double)));
      launch(mse_kernel<T>, config, span, scale, x.as<T>(), target.as<T>(), dx.as<T>(), partials);
      config.grid.x = 1;
      launch(mse_total_kernel<L>, config, blocks, scale, partials, loss.as<L>());
    });
  });
}

}  // namespace convoy::CONVOY_GPU
