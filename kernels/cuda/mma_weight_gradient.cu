// The weight gradient on tensor cores: filters by (r, s, c), summed over places (n, p, q) in parts
// that a second kernel adds up in their order.
#include "kernels/cuda/mma_launch.h"
#include "kernels/cuda/sum_pieces.h"

namespace convoy::CONVOY_GPU {
namespace {

template <class T, int Piece>
typename PlaceColumns<T, Piece>::Params place_columns(const ConvProblem& c, ConstBuffer x) {
  return {x.as<T>(),    c.n,
          c.h,          c.w,
          c.c,          c.p,
          c.q,          c.stride_h,
          c.stride_w,   -c.padding_h,
          -c.padding_w, c.r,
          c.s,          digits_of(kMmaRowStep<T, Piece>, c.p, c.q)};
}

// Small and square tiles alone: see mma_plan().
template <class Use>
void with_square_tiles(MmaTiles tiles, Use use) {
  if (tiles == MmaTiles::k64x64) return use(MmaTile64x64());
  use(MmaTile128x128());
}

template <class T, class B>
void weight_gradient(Stream& stream, const MmaPlan& plan, const typename B::Params& b,
                     ConstBuffer dy, float* to) {
  const ConvProblem& c = plan.problem;
  using A = DenseColumns<T, 16>;
  const int places = c.n * c.p * c.q, n = c.taps() * c.c;
  const MmaProblem<A, B, float> problem = {{dy.as<T>(), c.k, places, c.k},
                                           b,
                                           c.k,
                                           n,
                                           places,
                                           plan.split.length / kMmaDepth<T>,
                                           std::int64_t{c.k} * n,
                                           to,
                                           {1, 1, n, 0, 0},
                                           nullptr};
  const MmaArguments<A, B, float, 1> arguments = {{problem}};
  with_square_tiles(plan.tiles, [&]<class Tile>(Tile) {
    launch(mma_kernel<T, Tile, A, B, float, 1>, mma_config<Tile>(c.k, n, plan.split.count, stream),
           arguments);
  });
}

template <class T>
void weight_gradient(Stream& stream, const MmaPlan& plan, ConstBuffer x, ConstBuffer dy,
                     float* to) {
  const ConvProblem& c = plan.problem;
  if (is_matrix_product(c) && plan.piece == 16) {
    return weight_gradient<T, DenseColumns<T, 16>>(stream, plan,
                                                   {x.as<T>(), c.c, c.n * c.p * c.q, c.c}, dy, to);
  }
  if constexpr (sizeof(T) == 2) {
    if (plan.piece == 8) {
      return weight_gradient<T, PlaceColumns<T, 8>>(stream, plan, place_columns<T, 8>(c, x), dy,
                                                    to);
    }
  }
  weight_gradient<T, PlaceColumns<T, 16>>(stream, plan, place_columns<T, 16>(c, x), dy, to);
}

}  // namespace

void mma_weight_gradient(Stream& stream, const MmaPlan& plan, ConstBuffer x, ConstBuffer dy,
                         Buffer dw) {
  const ConvProblem& c = plan.problem;
  const std::int64_t count = std::int64_t{c.k} * c.taps() * c.c;
  const bool parts = plan.split.count > 1 || plan.rows;
  float* to = parts ? static_cast<float*>(stream.scratch(sizeof(float) * count * plan.split.count))
                    : dw.as<float>();
  if (x.dtype == DType::bf16) {
    weight_gradient<Bf16>(stream, plan, x, dy, to);
  } else {
    weight_gradient<float>(stream, plan, x, dy, to);
  }
  if (!parts) return;
  sum_pieces(stream, plan.split.count, count, to, dw.as<float>(), plan.rows.value_or(FilterRows()));
}

}  // namespace convoy::CONVOY_GPU
