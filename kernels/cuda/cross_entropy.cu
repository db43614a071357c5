// Softmax cross-entropy: a block takes one row of logits, finds its largest value and the sum of
// exponentials, and writes the row's loss and, in the same pass, the gradient. A second kernel of
// one block adds the losses of all rows in a fixed order.
//
//     t = x - largest; loss = (1 - s) * (log(sum) - t[label]) + s / classes * sum(log(sum) - t)
#include <cmath>
#include <limits>

#include "kernels/cuda/block_reduce.h"
#include "kernels/cuda/cross_entropy.h"
#include "kernels/cuda/failure.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/number_types.h"
#include "kernels/cuda/operands.h"
#include "kernels/cuda/shared.h"

namespace convoy::CONVOY_GPU {
namespace {

constexpr int kTotalThreads = 256;

/// NaN is nobody's maximum: it shows in the sum of exponentials.
struct Larger {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return b > a ? b : a;
  }
};

template <class T, int kThreads>
struct RowStorage {
  ReduceSlots<Math<T>, kThreads> slots;
};

/// combine(values use(i) of all classes i), in all threads.
template <class Number, int kThreads, class Combine, class Use>
__device__ __forceinline__ Number over_classes(ReduceSlots<Number, kThreads>& slots,
                                               std::int64_t classes, Number start, Combine combine,
                                               Use use) {
  Number value = start;
  CONVOY_NO_UNROLL
  for (std::int64_t i = threadIdx.x; i < classes; i += kThreads) value = combine(value, use(i));
  value = block_reduce_all(slots, value, combine);
  __syncthreads();  // all have read before the slots are used again
  return value;
}

/// Smoothing and scale of a call, and s / classes.
struct Smoothing {
  double label_smoothing, rest, scale;
};

template <class T, int kThreads>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_kernel(std::int64_t classes, Smoothing smoothing, const T* logits,
                         const std::int64_t* labels, double* losses, T* dlogits,
                         DeviceFailure* failure) {
  using Number = Math<T>;
  auto& slots = smem<RowStorage<T, kThreads>>().slots;
  const std::int64_t row = blockIdx.x, label = labels[row];
  const T* x = logits + row * classes;
  auto value = [x](std::int64_t i) { return to_math(x[i]); };
  const Number largest = over_classes<Number>(
      slots, classes, -std::numeric_limits<Number>::infinity(), Larger(), value);
  const Number sum = over_classes<Number>(slots, classes, Number(0), Add(), [&](std::int64_t i) {
    return std::exp(value(i) - largest);
  });
  const Number level = std::log(sum);
  double loss = 0;
  if (smoothing.rest != 0) {
    loss = smoothing.rest * static_cast<double>(over_classes<Number>(
                                slots, classes, Number(0), Add(),
                                [&](std::int64_t i) { return level - (value(i) - largest); }));
  }
  const bool valid = label >= 0 && label < classes;
  if (threadIdx.x == 0) {
    // What a label out of range would have cost is not read: the error surfaces instead.
    if (!valid) report_failure(failure, FailureCode::label_out_of_range, label, classes, row);
    const double miss = valid ? static_cast<double>(level - (value(label) - largest)) : 0;
    losses[row] = loss + (1 - smoothing.label_smoothing) * miss;
  }
  if (!dlogits) return;
  const auto scale = static_cast<Number>(smoothing.scale);
  const auto rest = static_cast<Number>(smoothing.rest);
  const auto wanted = static_cast<Number>(smoothing.rest + (1 - smoothing.label_smoothing));
  CONVOY_NO_UNROLL
  for (std::int64_t i = threadIdx.x; i < classes; i += kThreads) {
    const Number p = std::exp(value(i) - largest - level);
    dlogits[row * classes + i] = static_cast<T>((p - (i == label ? wanted : rest)) * scale);
  }
}

template <class T>
__global__ void __launch_bounds__(kTotalThreads)
    total_loss_kernel(std::int64_t rows, double scale, const double* losses, T* loss) {
  auto& slots = smem<ReduceSlots<double, kTotalThreads>>();
  double sum = 0;
  for (std::int64_t row = threadIdx.x; row < rows; row += kTotalThreads) sum += losses[row];
  sum = block_reduce(slots, sum);
  if (threadIdx.x == 0) *loss = static_cast<T>(sum * scale);
}

template <class T, int kThreads>
void launch_rows(cudaStream_t stream, const CrossEntropyShape& shape,
                 const CrossEntropyBuffers& buffers, DeviceFailure* failure) {
  const Smoothing smoothing{shape.label_smoothing,
                            shape.label_smoothing / static_cast<double>(shape.classes),
                            shape.scale};
  const LaunchConfig config{.grid = dim3(static_cast<unsigned>(shape.rows)),
                            .block = dim3(kThreads),
                            .shared_bytes = sizeof(RowStorage<T, kThreads>),
                            .stream = stream};
  launch(cross_entropy_kernel<T, kThreads>, config, shape.classes, smoothing,
         buffers.logits.as<T>(), buffers.labels, buffers.losses, buffers.dlogits.as<T>(), failure);
}

}  // namespace

void launch_cross_entropy(cudaStream_t stream, const CrossEntropyShape& shape,
                          const CrossEntropyBuffers& buffers, DeviceFailure* failure) {
  with_floating("softmax_cross_entropy", buffers.logits.dtype, [&]<class T>(T) {
    if (cross_entropy_threads(shape.classes) == 64) {
      launch_rows<T, 64>(stream, shape, buffers, failure);
    } else {
      launch_rows<T, 256>(stream, shape, buffers, failure);
    }
  });
}

void launch_total_loss(cudaStream_t stream, std::int64_t rows, double scale, const double* losses,
                       Buffer loss) {
  with_full("softmax_cross_entropy", loss.dtype, [&]<class T>(T) {
    const LaunchConfig config{.block = dim3(kTotalThreads),
                              .shared_bytes = sizeof(ReduceSlots<double, kTotalThreads>),
                              .stream = stream};
    launch(total_loss_kernel<T>, config, rows, scale, losses, loss.as<T>());
  });
}

}  // namespace convoy::CONVOY_GPU
