// Elementwise functions by the formulas of elementwise_list.h: in vectors of 16 bytes, computed in
// float for f32 and bf16, in double for f64.
#include "kernels/elementwise.h"

#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/operands.h"
#include "kernels/cuda/pack.h"

namespace convoy::CONVOY_GPU {
namespace {

template <class Formula, class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    unary_forward_kernel(Span span, const T* x, T* y) {
  for_each_pack<kLanes<T>>(span, [&]<int N>(Width<N>, std::int64_t i) {
    Pack<Math<T>, N> values = load_pack<N>(x + i);
    CONVOY_UNROLL
    for (int lane = 0; lane < N; ++lane) values[lane] = Formula::value(values[lane]);
    store_pack(y + i, values);
  });
}

template <class Formula, class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    unary_backward_kernel(Span span, const T* x, const T* y, const T* dy, T* dx) {
  for_each_pack<kLanes<T>>(span, [&]<int N>(Width<N>, std::int64_t i) {
    const auto xs = load_pack<N>(x + i), ys = load_pack<N>(y + i), dys = load_pack<N>(dy + i);
    Pack<Math<T>, N> dxs;
    CONVOY_UNROLL
    for (int lane = 0; lane < N; ++lane) {
      dxs[lane] = dys[lane] * Formula::derivative(xs[lane], ys[lane]);
    }
    store_pack(dx + i, dxs);
  });
}

template <class Formula, class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    binary_forward_kernel(Span span, const T* a, const T* b, T* y) {
  for_each_pack<kLanes<T>>(span, [&]<int N>(Width<N>, std::int64_t i) {
    const auto as = load_pack<N>(a + i), bs = load_pack<N>(b + i);
    Pack<Math<T>, N> ys;
    CONVOY_UNROLL
    for (int lane = 0; lane < N; ++lane) ys[lane] = Formula::value(as[lane], bs[lane]);
    store_pack(y + i, ys);
  });
}

// da or db may be null.
template <class Formula, class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    binary_backward_kernel(Span span, const T* a, const T* b, const T* dy, T* da, T* db) {
  for_each_pack<kLanes<T>>(span, [&]<int N>(Width<N>, std::int64_t i) {
    const auto as = load_pack<N>(a + i), bs = load_pack<N>(b + i), dys = load_pack<N>(dy + i);
    Pack<Math<T>, N> das, dbs;
    CONVOY_UNROLL
    for (int lane = 0; lane < N; ++lane) {
      das[lane] = dys[lane] * Formula::by_a(as[lane], bs[lane]);
      dbs[lane] = dys[lane] * Formula::by_b(as[lane], bs[lane]);
    }
    if (da) store_pack(da + i, das);
    if (db) store_pack(db + i, dbs);
  });
}

// Calls `use(Formula(), T(), span, config)` unless there is nothing to do.
template <class Op, class Use>
void with_span(const char* kernel, Stream& stream, Op op, std::int64_t count,
               std::initializer_list<ConstBuffer> operands, const Use& use) {
  with_floating(kernel, common_dtype(kernel, operands), [&]<class T>(T type) {
    if (count == 0) return;
    Span span = span_of(count, kLanes<T>, 16, {});
    for (const ConstBuffer& operand : operands) {
      span.vectors = std::min(span.vectors, span_of(count, kLanes<T>, 16, {operand.data}).vectors);
    }
    const LaunchConfig config = elementwise_config(span, kLanes<T>, handle(stream));
    with_formula(op, [&](auto formula) { use(formula, type, span, config); });
  });
}

}  // namespace

void unary_forward(Stream& stream, Unary op, std::int64_t count, ConstBuffer x, Buffer y) {
  with_span("unary_forward", stream, op, count, {x, y},
            [&]<class F, class T>(F, T, const Span& span, const LaunchConfig& config) {
              launch(unary_forward_kernel<F, T>, config, span, x.as<T>(), y.as<T>());
            });
}

void unary_backward(Stream& stream, Unary op, std::int64_t count, ConstBuffer x, ConstBuffer y,
                    ConstBuffer dy, Buffer dx) {
  with_span("unary_backward", stream, op, count, {x, y, dy, dx},
            [&]<class F, class T>(F, T, const Span& span, const LaunchConfig& config) {
              launch(unary_backward_kernel<F, T>, config, span, x.as<T>(), y.as<T>(), dy.as<T>(),
                     dx.as<T>());
            });
}

void binary_forward(Stream& stream, Binary op, std::int64_t count, ConstBuffer a, ConstBuffer b,
                    Buffer y) {
  with_span("binary_forward", stream, op, count, {a, b, y},
            [&]<class F, class T>(F, T, const Span& span, const LaunchConfig& config) {
              launch(binary_forward_kernel<F, T>, config, span, a.as<T>(), b.as<T>(), y.as<T>());
            });
}

void binary_backward(Stream& stream, Binary op, std::int64_t count, ConstBuffer a, ConstBuffer b,
                     ConstBuffer dy, Buffer da, Buffer db) {
  with_span("binary_backward", stream, op, count, {a, b, dy, da, db},
            [&]<class F, class T>(F, T, const Span& span, const LaunchConfig& config) {
              launch(binary_backward_kernel<F, T>, config, span, a.as<T>(), b.as<T>(), dy.as<T>(),
                     da.as<T>(), db.as<T>());
            });
}

}  // namespace convoy::CONVOY_GPU
