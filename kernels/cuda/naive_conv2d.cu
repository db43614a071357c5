// Convolution by its definition, one output per thread. Sums run over a filter's channels or a row
// of places first, then over these: long sums keep their digits.
#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/naive.h"
#include "kernels/cuda/operands.h"
#include "kernels/cuda/precision.h"
#include "kernels/cuda/strided.h"

namespace convoy::CONVOY_GPU {
namespace {

constexpr int kThreads = 256;

// The three tensors and what joins their places.
struct Geometry {
  Strided x, w, y;
  std::int64_t stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w;
  std::int64_t channels, filters;  // of a group

  __device__ std::int64_t row(std::int64_t p, std::int64_t r) const {
    return p * stride_h - padding_h + r * dilation_h;
  }
  __device__ std::int64_t column(std::int64_t q, std::int64_t s) const {
    return q * stride_w - padding_w + s * dilation_w;
  }
};

Geometry geometry(const Conv2dShape& s, LayoutId x, LayoutId w, LayoutId y) {
  return {strided(x, s.x()), strided(w, s.weight()),
          strided(y, s.y()), s.stride_h,
          s.stride_w,        s.padding_h,
          s.padding_w,       s.dilation_h,
          s.dilation_w,      s.c / s.groups,
          s.k / s.groups};
}

__device__ bool inside(const Strided& t, std::int64_t row, std::int64_t column) {
  return row >= 0 && row < t.h && column >= 0 && column < t.w;
}

template <class T>
using Sum = typename Precision<T>::Sum;
template <class T>
using Parameter = typename Precision<T>::Parameter;

// sum over i < count of a[i * a_stride] * b[i * b_stride]
template <class T>
__device__ Sum<T> dot(std::int64_t count, const T* a, std::int64_t a_stride, const T* b,
                      std::int64_t b_stride) {
  Sum<T> sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    sum += static_cast<Sum<T>>(a[i * a_stride]) * static_cast<Sum<T>>(b[i * b_stride]);
  }
  return sum;
}

// The thread's element of `count`, or one past the last for threads without.
__device__ std::int64_t element(std::int64_t count) {
  const std::int64_t index = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  return index < count ? index : count;
}

template <class T>
__global__ void forward_kernel(Geometry g, const T* x, const T* w, const Parameter<T>* b, T* y) {
  const std::int64_t offset = element(g.y.stored());
  if (offset == g.y.stored()) return;
  const Index4 at = index_of(g.y, offset);
  Sum<T> sum = 0;
  const bool stored = at.b < g.y.b;
  const std::int64_t first = at.b / g.filters * g.channels;
  for (std::int64_t r = 0; stored && r < g.w.h; ++r) {
    for (std::int64_t s = 0; s < g.w.w; ++s) {
      const std::int64_t row = g.row(at.h, r), column = g.column(at.w, s);
      if (!inside(g.x, row, column)) continue;
      sum += dot(g.channels, x + g.x.at(at.a, first, row, column), g.x.stride_b,
                 w + g.w.at(at.b, 0, r, s), g.w.stride_b);
    }
  }
  if (b != nullptr && stored) sum += b[at.b];
  y[offset] = static_cast<T>(sum);
}

template <class T>
__global__ void input_gradient_kernel(Geometry g, const T* dy, const T* w, T* dx) {
  const std::int64_t offset = element(g.x.stored());
  if (offset == g.x.stored()) return;
  const Index4 at = index_of(g.x, offset);
  const std::int64_t first = at.b / g.channels * g.filters;
  Sum<T> sum = 0;
  for (std::int64_t r = 0; at.b < g.x.b && r < g.w.h; ++r) {
    for (std::int64_t s = 0; s < g.w.w; ++s) {
      const std::int64_t row = at.h + g.padding_h - r * g.dilation_h;
      const std::int64_t column = at.w + g.padding_w - s * g.dilation_w;
      if (row % g.stride_h != 0 || column % g.stride_w != 0) continue;
      const std::int64_t p = row / g.stride_h, q = column / g.stride_w;
      if (!inside(g.y, p, q)) continue;
      sum += dot(g.filters, dy + g.y.at(at.a, first, p, q), g.y.stride_b,
                 w + g.w.at(first, at.b % g.channels, r, s), g.w.stride_a);
    }
  }
  dx[offset] = static_cast<T>(sum);
}

// What the places of row p of one image give to the filter's place (r, s).
template <class T>
__device__ Sum<T> row_product(const Geometry& g, std::int64_t image, std::int64_t p, std::int64_t c,
                              const Index4& at, const T* x, const T* dy) {
  Sum<T> sum = 0;
  const std::int64_t row = g.row(p, at.h);
  for (std::int64_t q = 0; q < g.y.w; ++q) {
    const std::int64_t column = g.column(q, at.w);
    if (!inside(g.x, row, column)) continue;
    sum += static_cast<Sum<T>>(x[g.x.at(image, c, row, column)]) *
           static_cast<Sum<T>>(dy[g.y.at(image, at.a, p, q)]);
  }
  return sum;
}

template <class T>
__global__ void weight_gradient_kernel(Geometry g, const T* x, const T* dy, Parameter<T>* dw) {
  const std::int64_t offset = element(g.w.stored());
  if (offset == g.w.stored()) return;
  const Index4 at = index_of(g.w, offset);
  const std::int64_t c = at.a / g.filters * g.channels + at.b;
  Sum<T> sum = 0;
  for (std::int64_t image = 0; at.b < g.w.b && image < g.x.a; ++image) {
    Sum<T> of_image = 0;
    for (std::int64_t p = 0; p < g.y.h; ++p) {
      of_image += row_product(g, image, p, c, at, x, dy);
    }
    sum += of_image;
  }
  dw[offset] = sum;
}

LaunchConfig one_per_thread(Stream& stream, std::int64_t count) {
  return {.grid = dim3(static_cast<unsigned>((count + kThreads - 1) / kThreads)),
          .block = dim3(kThreads),
          .shared_bytes = 0,
          .stream = handle(stream)};
}

}  // namespace

void naive_conv2d_forward(Stream& stream, const Conv2dShape& shape, ConstBuffer x, ConstBuffer w,
                          ConstBuffer b, Buffer y) {
  const Geometry g = geometry(shape, x.layout, w.layout, y.layout);
  if (g.y.stored() == 0) return;
  with_floating("conv2d_forward", x.dtype, [&]<class T>(T) {
    launch(forward_kernel<T>, one_per_thread(stream, g.y.stored()), g, x.as<T>(), w.as<T>(),
           b.as<Parameter<T>>(), y.as<T>());
  });
}

void naive_conv2d_input_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer dy,
                                 ConstBuffer w, Buffer dx) {
  const Geometry g = geometry(shape, dx.layout, w.layout, dy.layout);
  if (g.x.stored() == 0) return;
  with_floating("conv2d_input_gradient", dy.dtype, [&]<class T>(T) {
    launch(input_gradient_kernel<T>, one_per_thread(stream, g.x.stored()), g, dy.as<T>(), w.as<T>(),
           dx.as<T>());
  });
}

void naive_conv2d_weight_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer x,
                                  ConstBuffer dy, Buffer dw) {
  const Geometry g = geometry(shape, x.layout, dw.layout, dy.layout);
  if (g.w.stored() == 0) return;
  with_floating("conv2d_weight_gradient", x.dtype, [&]<class T>(T) {
    launch(weight_gradient_kernel<T>, one_per_thread(stream, g.w.stored()), g, x.as<T>(),
           dy.as<T>(), dw.as<Parameter<T>>());
  });
}

}  // namespace convoy::CONVOY_GPU
