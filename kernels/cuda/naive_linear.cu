// Linear by its definition, one output per thread.
#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/naive.h"
#include "kernels/cuda/operands.h"
#include "kernels/cuda/precision.h"

namespace convoy::CONVOY_GPU {
namespace {

constexpr int kThreads = 256;

// A matrix; element (row, column) lies at row * rows + column * columns.
template <class T>
struct Matrix {
  const T* data;
  std::int64_t rows, columns;

  __device__ const T& at(std::int64_t row, std::int64_t column) const {
    return data[row * rows + column * columns];
  }
};

// y (m, n) = a (m, depth) b (depth, n) + bias (n). Sums in pieces of 64: long ones keep digits.
template <class T, class Out>
__global__ void product_kernel(std::int64_t m, std::int64_t n, std::int64_t depth, Matrix<T> a,
                               Matrix<T> b, const typename Precision<T>::Parameter* bias, Out* y) {
  using Sum = typename Precision<T>::Sum;
  constexpr std::int64_t kPiece = 64;
  const std::int64_t index = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (index >= m * n) return;
  const std::int64_t row = index / n, column = index % n;
  Sum sum = 0;
  for (std::int64_t first = 0; first < depth; first += kPiece) {
    Sum piece = 0;
    for (std::int64_t i = first; i < first + kPiece && i < depth; ++i) {
      piece += static_cast<Sum>(a.at(row, i)) * static_cast<Sum>(b.at(i, column));
    }
    sum += piece;
  }
  if (bias != nullptr) sum += bias[column];
  y[index] = static_cast<Out>(sum);
}

template <class T, class Out>
void product(Stream& stream, std::int64_t m, std::int64_t n, std::int64_t depth, Matrix<T> a,
             Matrix<T> b, const typename Precision<T>::Parameter* bias, Out* y) {
  if (m * n == 0) return;
  const LaunchConfig config = {
      .grid = dim3(static_cast<unsigned>((m * n + kThreads - 1) / kThreads)),
      .block = dim3(kThreads),
      .shared_bytes = 0,
      .stream = handle(stream)};
  launch(product_kernel<T, Out>, config, m, n, depth, a, b, bias, y);
}

template <class T>
Matrix<T> row_major(ConstBuffer data, std::int64_t width) {
  return {data.as<T>(), width, 1};
}

template <class T>
Matrix<T> transposed(ConstBuffer data, std::int64_t width) {
  return {data.as<T>(), 1, width};
}

}  // namespace

void naive_linear_forward(Stream& stream, const LinearShape& s, ConstBuffer x, ConstBuffer w,
                          ConstBuffer b, Buffer y) {
  with_floating("linear_forward", x.dtype, [&]<class T>(T) {
    product(stream, s.rows, s.out, s.in, row_major<T>(x, s.in), transposed<T>(w, s.in),
            b.as<typename Precision<T>::Parameter>(), y.as<T>());
  });
}

void naive_linear_input_gradient(Stream& stream, const LinearShape& s, ConstBuffer dy,
                                 ConstBuffer w, Buffer dx) {
  with_floating("linear_input_gradient", dy.dtype, [&]<class T>(T) {
    product<T>(stream, s.rows, s.in, s.out, row_major<T>(dy, s.out), row_major<T>(w, s.in), nullptr,
               dx.as<T>());
  });
}

void naive_linear_weight_gradient(Stream& stream, const LinearShape& s, ConstBuffer x,
                                  ConstBuffer dy, Buffer dw) {
  with_floating("linear_weight_gradient", x.dtype, [&]<class T>(T) {
    product<T>(stream, s.out, s.in, s.rows, transposed<T>(dy, s.out), row_major<T>(x, s.in),
               nullptr, dw.as<typename Precision<T>::Parameter>());
  });
}

}  // namespace convoy::CONVOY_GPU
