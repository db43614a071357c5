// Conversion between element types, by C++'s own rules; to and from bf16 by way of float. The wider
// of the two types fills vectors of 16 bytes.
#include "kernels/cuda/gpu_stream.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/operands.h"
#include "kernels/cuda/pack.h"

namespace convoy::CONVOY_GPU {
namespace {

template <class From, class To>
inline constexpr int kCastLanes = std::min(kLanes<From>, kLanes<To>);

template <class To, class From>
__device__ __forceinline__ To convert(From value) {
  return static_cast<To>(static_cast<Math<To>>(static_cast<Math<From>>(value)));
}

template <class From, class To>
__global__ void __launch_bounds__(kElementwiseThreads)
    cast_kernel(Span span, const From* x, To* y) {
  for_each_pack<kCastLanes<From, To>>(span, [&]<int N>(Width<N>, std::int64_t i) {
    const Vector<From, N> from = load_vector<N>(x + i);
    Vector<To, N> to;
    CONVOY_UNROLL
    for (int lane = 0; lane < N; ++lane) to[lane] = convert<To>(from[lane]);
    store_vector(y + i, to);
  });
}

template <class Use>
void with_any_type(DType dtype, const Use& use) {
  switch (dtype) {
    case DType::f32:
      return use(float());
    case DType::f64:
      return use(double());
    case DType::bf16:
      return use(Bf16());
    case DType::i64:
      return use(std::int64_t());
    case DType::i32:
      return use(std::int32_t());
    case DType::u8:
      return use(std::uint8_t());
  }
}

template <class From, class To>
void queue(Stream& stream, std::int64_t count, const From* x, To* y) {
  constexpr int kN = kCastLanes<From, To>;
  Span span = span_of(count, kN, kN * sizeof(From), {x});
  span.vectors = std::min(span.vectors, span_of(count, kN, kN * sizeof(To), {y}).vectors);
  launch(cast_kernel<From, To>, elementwise_config(span, kN, handle(stream)), span, x, y);
}

}  // namespace

void cast(Stream& stream, std::int64_t count, ConstBuffer x, Buffer y) {
  check_same_layout("cast", {x, y});
  if (count == 0) return;
  with_any_type(x.dtype, [&]<class From>(From) {
    with_any_type(y.dtype, [&]<class To>(To) { queue(stream, count, x.as<From>(), y.as<To>()); });
  });
}

}  // namespace convoy::CONVOY_GPU
