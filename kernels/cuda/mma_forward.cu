// The forward pass on tensor cores: places (n, p, q) by filters, summed over (r, s, c).
#include "kernels/cuda/filter_rows.h"
#include "kernels/cuda/mma_launch.h"

namespace convoy::CONVOY_GPU {
namespace {

template <class T, class A, int Piece>
void forward(Stream& stream, const MmaPlan& plan, const typename A::Params& a, ConstBuffer w,
             ConstBuffer b, Buffer y) {
  const ConvProblem& c = plan.problem;
  const int m = c.n * c.p * c.q, depth = c.taps() * c.c;
  using B = DenseRows<T, Piece>;
  launch_mma<T>(stream, plan.tiles,
                MmaProblem<A, B, T>{a,
                                    {w.as<T>(), depth, c.k, depth},
                                    m,
                                    c.k,
                                    depth,
                                    kMmaAllSteps,
                                    0,
                                    y.as<T>(),
                                    {1, 1, c.k, 0, 0},
                                    b.as<float>()});
}

template <class T>
void forward(Stream& stream, const MmaPlan& plan, ConstBuffer x, ConstBuffer w, ConstBuffer b,
             Buffer y) {
  const ConvProblem& c = plan.problem;
  if (is_matrix_product(c) && plan.piece == 16) {
    const int m = c.n * c.p * c.q;
    return forward<T, DenseRows<T, 16>, 16>(stream, plan, {x.as<T>(), c.c, m, c.c}, w, b, y);
  }
  const Gather gather = forward_gather(c);
  if constexpr (sizeof(T) == 2) {
    if (plan.piece == 8) {
      return forward<T, TapRows<T, 8>, 8>(stream, plan, tap_rows<T, 8>(gather, c.n, x), w, b, y);
    }
  }
  forward<T, TapRows<T, 16>, 16>(stream, plan, tap_rows<T, 16>(gather, c.n, x), w, b, y);
}

}  // namespace

void mma_forward(Stream& stream, const MmaPlan& plan, ConstBuffer x, ConstBuffer w, ConstBuffer b,
                 Buffer y) {
  if (plan.rows) w = padded_filters(stream, plan.problem, *plan.rows, w);
  if (x.dtype == DType::bf16) {
    forward<Bf16>(stream, plan, x, w, b, y);
  } else {
    forward<float>(stream, plan, x, w, b, y);
  }
}

}  // namespace convoy::CONVOY_GPU
