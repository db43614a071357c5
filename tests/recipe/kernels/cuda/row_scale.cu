// y = x with each column multiplied by its factor: a thread for each value, and for each column of
// dw.
#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/operands.h"

namespace convoy::CONVOY_GPU {
namespace {

constexpr int kThreads = 128;

LaunchConfig config_of(Stream& stream, std::int64_t threads) {
  return {.grid = {static_cast<unsigned>((threads + kThreads - 1) / kThreads)},
          .block = {kThreads},
          .stream = handle(stream)};
}

__device__ std::int64_t thread_number() {
  return std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
}

template <class T>
__global__ void row_scale_kernel(RowScaleShape shape, const T* x, const T* w, T* y) {
  const std::int64_t i = thread_number();
  if (i < shape.rows * shape.width) y[i] = x[i] * w[i % shape.width];
}

template <class T>
__global__ void row_scale_weights_kernel(RowScaleShape shape, const T* x, const T* dy, T* dw) {
  const std::int64_t c = thread_number();
  if (c >= shape.width) return;
  double sum = 0;
  for (std::int64_t i = c; i < shape.rows * shape.width; i += shape.width) {
    sum += static_cast<double>(x[i]) * static_cast<double>(dy[i]);
  }
  dw[c] = static_cast<T>(sum);
}

}  // namespace

void row_scale_forward(Stream& stream, const RowScaleShape& shape, ConstBuffer x, ConstBuffer w,
                       Buffer y) {
  constexpr const char* kName = "row_scale_forward";
  check_plain(kName, {x, w, y});
  with_full(kName, common_dtype(kName, {x, w, y}), [&]<class T>(T) {
    launch(row_scale_kernel<T>, config_of(stream, shape.rows * shape.width), shape, x.as<T>(),
           w.as<T>(), y.as<T>());
  });
}

void row_scale_input_gradient(Stream& stream, const RowScaleShape& shape, ConstBuffer dy,
                              ConstBuffer w, Buffer dx) {
  row_scale_forward(stream, shape, dy, w, dx);
}

void row_scale_weight_gradient(Stream& stream, const RowScaleShape& shape, ConstBuffer x,
                               ConstBuffer dy, Buffer dw) {
  constexpr const char* kName = "row_scale_weight_gradient";
  check_plain(kName, {x, dy, dw});
  with_full(kName, common_dtype(kName, {x, dy, dw}), [&]<class T>(T) {
    launch(row_scale_weights_kernel<T>, config_of(stream, shape.width), shape, x.as<T>(),
           dy.as<T>(), dw.as<T>());
  });
}

}  // namespace convoy::CONVOY_GPU
