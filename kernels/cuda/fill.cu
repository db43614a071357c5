// Setting and scaling all values of a buffer.
#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/operands.h"
#include "kernels/cuda/pack.h"

namespace convoy::CONVOY_GPU {
namespace {

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads) fill_kernel(Span span, Math<T> value, T* x) {
  for_each_pack<kLanes<T>>(span, [&]<int N>(Width<N>, std::int64_t i) {
    Pack<Math<T>, N> values;
    CONVOY_UNROLL
    for (int lane = 0; lane < N; ++lane) values[lane] = value;
    store_pack(x + i, values);
  });
}

template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    scale_kernel(Span span, Math<T> factor, T* x) {
  for_each_pack<kLanes<T>>(span, [&]<int N>(Width<N>, std::int64_t i) {
    Pack<Math<T>, N> values = load_pack<N>(x + i);
    CONVOY_UNROLL
    for (int lane = 0; lane < N; ++lane) values[lane] *= factor;
    store_pack(x + i, values);
  });
}

}  // namespace

void fill(Stream& stream, std::int64_t count, double value, Buffer x) {
  with_floating("fill", common_dtype("fill", {x}), [&]<class T>(T) {
    if (count == 0) return;
    const Span span = span_of(count, kLanes<T>, 16, {x.data});
    launch(fill_kernel<T>, elementwise_config(span, kLanes<T>, handle(stream)), span, value,
           x.as<T>());
  });
}

void scale(Stream& stream, std::int64_t count, double factor, Buffer x) {
  with_floating("scale", common_dtype("scale", {x}), [&]<class T>(T) {
    if (count == 0) return;
    const Span span = span_of(count, kLanes<T>, 16, {x.data});
    launch(scale_kernel<T>, elementwise_config(span, kLanes<T>, handle(stream)), span, factor,
           x.as<T>());
  });
}

}  // namespace convoy::CONVOY_GPU
