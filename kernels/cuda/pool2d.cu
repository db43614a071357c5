// Max and average pooling, forward and backward: a thread writes some neighbouring channels of one
// place and reads the windows that touch it. Backward gathers, so that sums have one order and
// nothing is added atomically.
#include <limits>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/number_types.h"
#include "kernels/cuda/pool2d_kernels.h"

namespace convoy::CONVOY_GPU {
namespace {

/// A place of an image and its first channel.
struct Place {
  int channel, row, column;
};

/// Calls use(image, place) for what this thread writes of images of h x w places, if anything.
template <int kWidth, class Use>
__device__ __forceinline__ void at_place(const PoolGeometry& g, std::int64_t images,
                                         bool channels_first, int h, int w, Use use) {
  const int vectors = (g.channels + kWidth - 1) / kWidth;
  const unsigned item = blockIdx.x * kPoolThreads + threadIdx.x;
  if (item >= static_cast<unsigned>(vectors * h * w)) return;
  Place place;
  if (channels_first) {
    const unsigned rest = item / vectors;
    place = {static_cast<int>(item - rest * vectors) * kWidth, static_cast<int>(rest / w),
             static_cast<int>(rest % w)};
  } else {
    const unsigned rest = item / w;
    place = {static_cast<int>(rest / h) * kWidth, static_cast<int>(rest % h),
             static_cast<int>(item - rest * w)};
  }
  const std::int64_t n = static_cast<std::int64_t>(blockIdx.z) * gridDim.y + blockIdx.y;
  if (n < images) use(n, place);
}

/// Where the first of the thread's channels of (row, column) lies, w places to a row.
__device__ __forceinline__ std::int64_t offset_of(const ActivationStrides& strides, std::int64_t n,
                                                  int channel, int row, int column, int w) {
  return n * strides.image + channel * strides.channel +
         (static_cast<std::int64_t>(row) * w + column) * strides.position;
}

template <class T, int kWidth>
__device__ __forceinline__ Vector<T, kWidth> load_at(const ActivationIn& in, std::int64_t offset) {
  const T* data = static_cast<const T*>(in.data) + offset;
  if constexpr (kWidth > 1) return load_vector<kWidth>(data);
  return {{*data}};
}

template <class T, int kWidth>
__device__ __forceinline__ void store_at(const ActivationOut& out, std::int64_t offset,
                                         const Vector<T, kWidth>& values) {
  T* data = static_cast<T*>(out.data) + offset;
  if constexpr (kWidth > 1) {
    store_vector(data, values);
  } else {
    *data = values[0];
  }
}

/// Sums, rounded once.
template <class T, int kWidth>
__device__ __forceinline__ Vector<T, kWidth> stored(const SumOf<T> (&sums)[kWidth]) {
  Vector<T, kWidth> values;
  CONVOY_UNROLL
  for (int i = 0; i < kWidth; ++i) values[i] = static_cast<T>(static_cast<Math<T>>(sums[i]));
  return values;
}

/// Places first..last-1 along one axis.
struct Range {
  int first, last;
};

/// The places of the image in the window that starts at `start`, from its own start on.
__device__ __forceinline__ Range inside(int start, int kernel, int extent) {
  return {start < 0 ? -start : 0, extent - start < kernel ? extent - start : kernel};
}

/// The windows that touch a place.
__device__ __forceinline__ Range windows_over(int place, int kernel, int stride, int padding,
                                              int count) {
  const int reach = place + padding - kernel + 1;
  const int last = (place + padding) / stride + 1;
  return {reach > 0 ? (reach + stride - 1) / stride : 0, last < count ? last : count};
}

/// The largest value of each channel and its position; NaN is larger than all, the first one stays.
template <class T, int kWidth>
struct Maximum {
  __device__ __forceinline__ Maximum() {
    CONVOY_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      best[i] = -std::numeric_limits<Math<T>>::infinity();
      position[i] = -1;
    }
  }
  __device__ __forceinline__ void take(const Vector<T, kWidth>& x, int here) {
    CONVOY_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      const Math<T> value = to_math(x[i]);
      const bool first_nan = value != value && best[i] == best[i];
      if (position[i] < 0 || value > best[i] || first_nan) {
        best[i] = value;
        position[i] = here;
      }
    }
  }
  Math<T> best[kWidth];
  int position[kWidth];
};

template <class T, int kWidth>
__global__ void __launch_bounds__(kPoolThreads)
    max_pool2d_forward_kernel(PoolGeometry g, std::int64_t images, bool channels_first,
                              ActivationIn x, ActivationOut y, ActivationOut index) {
  at_place<kWidth>(g, images, channels_first, g.out_h, g.out_w, [&](std::int64_t n, Place at) {
    const int top = at.row * g.stride_h - g.padding_h, left = at.column * g.stride_w - g.padding_w;
    const Range rows = inside(top, g.kernel_h, g.h), columns = inside(left, g.kernel_w, g.w);
    Maximum<T, kWidth> maximum;
    for (int i = rows.first; i < rows.last; ++i) {
      for (int j = columns.first; j < columns.last; ++j) {
        const std::int64_t from = offset_of(x.strides, n, at.channel, top + i, left + j, g.w);
        maximum.take(load_at<T, kWidth>(x, from), i * g.kernel_w + j);
      }
    }
    Vector<T, kWidth> values;
    Vector<std::uint8_t, kWidth> positions;
    CONVOY_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      values[i] = static_cast<T>(maximum.best[i]);
      positions[i] = static_cast<std::uint8_t>(maximum.position[i] < 0 ? 0 : maximum.position[i]);
    }
    store_at(y, offset_of(y.strides, n, at.channel, at.row, at.column, g.out_w), values);
    if (!index.data) return;
    store_at(index, offset_of(index.strides, n, at.channel, at.row, at.column, g.out_w), positions);
  });
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kPoolThreads)
    max_pool2d_backward_kernel(PoolGeometry g, std::int64_t images, bool channels_first,
                               ActivationIn dy, ActivationIn index, ActivationOut dx) {
  at_place<kWidth>(g, images, channels_first, g.h, g.w, [&](std::int64_t n, Place at) {
    const Range rows = windows_over(at.row, g.kernel_h, g.stride_h, g.padding_h, g.out_h);
    const Range columns = windows_over(at.column, g.kernel_w, g.stride_w, g.padding_w, g.out_w);
    SumOf<T> sums[kWidth] = {};
    for (int i = rows.first; i < rows.last; ++i) {
      for (int j = columns.first; j < columns.last; ++j) {
        const int position = (at.row + g.padding_h - i * g.stride_h) * g.kernel_w + at.column +
                             g.padding_w - j * g.stride_w;
        const auto gradient =
            load_at<T, kWidth>(dy, offset_of(dy.strides, n, at.channel, i, j, g.out_w));
        const auto maximum = load_at<std::uint8_t, kWidth>(
            index, offset_of(index.strides, n, at.channel, i, j, g.out_w));
        CONVOY_UNROLL
        for (int k = 0; k < kWidth; ++k) {
          if (maximum[k] == position) sums[k] += static_cast<SumOf<T>>(to_math(gradient[k]));
        }
      }
    }
    store_at(dx, offset_of(dx.strides, n, at.channel, at.row, at.column, g.w),
             stored<T, kWidth>(sums));
  });
}

/// What the sum of the window at (top, left) is divided by.
__device__ __forceinline__ int divisor(const PoolGeometry& g, int top, int left) {
  if (g.count_padding) return g.kernel_h * g.kernel_w;
  const Range rows = inside(top, g.kernel_h, g.h), columns = inside(left, g.kernel_w, g.w);
  return (rows.last - rows.first) * (columns.last - columns.first);
}

/// 1 / places. In double by Newton's steps from float, to the last digit or its neighbour: a
/// division of doubles is a call, which costs registers in a loop.
template <class Number>
__device__ __forceinline__ Number one_by(int places) {
  Number share = 1.0f / static_cast<float>(places);
  if constexpr (sizeof(Number) > sizeof(float)) {
    CONVOY_UNROLL
    for (int step = 0; step < 2; ++step) share *= 2 - places * share;
  }
  return share;
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kPoolThreads)
    avg_pool2d_forward_kernel(PoolGeometry g, std::int64_t images, bool channels_first,
                              ActivationIn x, ActivationOut y) {
  at_place<kWidth>(g, images, channels_first, g.out_h, g.out_w, [&](std::int64_t n, Place at) {
    const int top = at.row * g.stride_h - g.padding_h, left = at.column * g.stride_w - g.padding_w;
    const Range rows = inside(top, g.kernel_h, g.h), columns = inside(left, g.kernel_w, g.w);
    SumOf<T> sums[kWidth] = {};
    for (int i = rows.first; i < rows.last; ++i) {
      for (int j = columns.first; j < columns.last; ++j) {
        const auto values =
            load_at<T, kWidth>(x, offset_of(x.strides, n, at.channel, top + i, left + j, g.w));
        CONVOY_UNROLL
        for (int k = 0; k < kWidth; ++k) sums[k] += static_cast<SumOf<T>>(to_math(values[k]));
      }
    }
    const SumOf<T> share = one_by<SumOf<T>>(divisor(g, top, left));
    CONVOY_UNROLL
    for (int k = 0; k < kWidth; ++k) sums[k] *= share;
    store_at(y, offset_of(y.strides, n, at.channel, at.row, at.column, g.out_w),
             stored<T, kWidth>(sums));
  });
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kPoolThreads)
    avg_pool2d_backward_kernel(PoolGeometry g, std::int64_t images, bool channels_first,
                               ActivationIn dy, ActivationOut dx) {
  at_place<kWidth>(g, images, channels_first, g.h, g.w, [&](std::int64_t n, Place at) {
    const Range rows = windows_over(at.row, g.kernel_h, g.stride_h, g.padding_h, g.out_h);
    const Range columns = windows_over(at.column, g.kernel_w, g.stride_w, g.padding_w, g.out_w);
    SumOf<T> sums[kWidth] = {};
    for (int i = rows.first; i < rows.last; ++i) {
      CONVOY_NO_UNROLL  // a division is a call: it has few registers to keep
          for (int j = columns.first; j < columns.last; ++j) {
        const SumOf<T> share = one_by<SumOf<T>>(
            divisor(g, i * g.stride_h - g.padding_h, j * g.stride_w - g.padding_w));
        const auto gradient =
            load_at<T, kWidth>(dy, offset_of(dy.strides, n, at.channel, i, j, g.out_w));
        CONVOY_UNROLL
        for (int k = 0; k < kWidth; ++k) {
          sums[k] += static_cast<SumOf<T>>(to_math(gradient[k])) * share;
        }
      }
    }
    store_at(dx, offset_of(dx.strides, n, at.channel, at.row, at.column, g.w),
             stored<T, kWidth>(sums));
  });
}

/// Launches `kernel` for what is written of the images: `places` of each channel.
template <class... Parameters, class... Operands>
void launch_pool(cudaStream_t stream, const PoolProblem& problem, int places,
                 void (*kernel)(PoolGeometry, std::int64_t, bool, Parameters...),
                 Operands... operands) {
  const PoolGeometry& g = problem.geometry;
  const LaunchConfig config{.grid = pool_grid(places, g.channels, problem.width, problem.images),
                            .block = dim3(kPoolThreads),
                            .stream = stream};
  launch(kernel, config, g, problem.images, problem.channels_first, operands...);
}

int places_of_x(const PoolProblem& problem) {
  return problem.geometry.h * problem.geometry.w;
}
int places_of_y(const PoolProblem& problem) {
  return problem.geometry.out_h * problem.geometry.out_w;
}

}  // namespace

void launch_max_forward(cudaStream_t stream, const PoolProblem& problem, ActivationIn x,
                        ActivationOut y, ActivationOut index) {
  with_width(problem.dtype, problem.width, [&]<class T, int kWidth>() {
    launch_pool(stream, problem, places_of_y(problem), max_pool2d_forward_kernel<T, kWidth>, x, y,
                index);
  });
}

void launch_max_backward(cudaStream_t stream, const PoolProblem& problem, ActivationIn dy,
                         ActivationIn index, ActivationOut dx) {
  with_width(problem.dtype, problem.width, [&]<class T, int kWidth>() {
    launch_pool(stream, problem, places_of_x(problem), max_pool2d_backward_kernel<T, kWidth>, dy,
                index, dx);
  });
}

void launch_avg_forward(cudaStream_t stream, const PoolProblem& problem, ActivationIn x,
                        ActivationOut y) {
  with_width(problem.dtype, problem.width, [&]<class T, int kWidth>() {
    launch_pool(stream, problem, places_of_y(problem), avg_pool2d_forward_kernel<T, kWidth>, x, y);
  });
}

void launch_avg_backward(cudaStream_t stream, const PoolProblem& problem, ActivationIn dy,
                         ActivationOut dx) {
  with_width(problem.dtype, problem.width, [&]<class T, int kWidth>() {
    launch_pool(stream, problem, places_of_x(problem), avg_pool2d_backward_kernel<T, kWidth>, dy,
                dx);
  });
}

}  // namespace convoy::CONVOY_GPU
