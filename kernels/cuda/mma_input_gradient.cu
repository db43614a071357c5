// The input gradient on tensor cores: pixels of dx by channels, summed over (tap, filter). Pixels
// of a parity class meet the same taps; classes without taps are zeros.
#include <algorithm>

#include "kernels/cuda/mma_launch.h"

namespace convoy::CONVOY_GPU {
namespace {

constexpr int kClasses = 4;  // of stride 2 in both directions; the last ones may be empty

// Weights (filter, tap row, tap column, channel) of the taps of `gather`.
template <class T>
typename TapColumns<T, 16>::Params tap_columns(const ConvProblem& c, const Gather& g,
                                               ConstBuffer w) {
  const int filter = c.taps() * c.c, row = c.s * c.c;
  return {w.as<T>() + g.first_r * row + g.first_s * c.c,
          filter,
          c.k,
          c.c,
          g.taps_h,
          g.taps_w,
          g.step_r * row,
          g.step_s * c.c,
          step_of(g, kMmaRowStep<T, 16>)};
}

template <class T>
using ClassProblem = MmaProblem<TapRows<T, 16>, TapColumns<T, 16>, T>;

// Pixels of dx of class `index`.
template <class T>
ClassProblem<T> class_problem(const ConvProblem& c, int index, ConstBuffer dy, ConstBuffer w,
                              Buffer dx) {
  Gather g = input_gradient_gather(c, index);
  const int m = c.n * g.places(), depth = g.depth();
  // Indices are divided by these extents, in classes without places or taps too.
  if (g.taps() == 0) g.taps_h = 0, g.taps_w = 1;
  g.places_h = std::max(g.places_h, 1);
  g.places_w = std::max(g.places_w, 1);
  return {tap_rows<T, 16>(g, c.n, dy),
          tap_columns<T>(c, g, w),
          m,
          c.c,
          depth,
          kMmaAllSteps,
          0,
          dx.as<T>() + parity_pixel(c, index, 0, 0),
          {g.places_h, g.places_w, std::int64_t{c.h} * c.w * c.c,
           std::int64_t{c.stride_h} * c.w * c.c, std::int64_t{c.stride_w} * c.c},
          nullptr};
}

template <class T>
void by_classes(Stream& stream, const MmaPlan& plan, ConstBuffer dy, ConstBuffer w, Buffer dx) {
  const ConvProblem& c = plan.problem;
  MmaArguments<TapRows<T, 16>, TapColumns<T, 16>, T, kClasses> arguments = {};
  const int classes = parity_classes(c);
  int m = 0;
  for (int i = 0; i < classes; ++i) {
    arguments.problems[i] = class_problem<T>(c, i, dy, w, dx);
    m = std::max(m, arguments.problems[i].m);
  }
  with_tiles(plan.tiles, [&]<class Tile>(Tile) {
    launch(mma_kernel<T, Tile, TapRows<T, 16>, TapColumns<T, 16>, T, kClasses>,
           mma_config<Tile>(m, c.c, classes, stream), arguments);
  });
}

template <class T>
void input_gradient(Stream& stream, const MmaPlan& plan, ConstBuffer dy, ConstBuffer w, Buffer dx) {
  const ConvProblem& c = plan.problem;
  if (is_matrix_product(c)) {
    const int m = c.n * c.h * c.w;
    launch_mma<T>(stream, plan.tiles,
                  MmaProblem<DenseRows<T, 16>, DenseColumns<T, 16>, T>{{dy.as<T>(), c.k, m, c.k},
                                                                       {w.as<T>(), c.c, c.k, c.c},
                                                                       m,
                                                                       c.c,
                                                                       c.k,
                                                                       kMmaAllSteps,
                                                                       0,
                                                                       dx.as<T>(),
                                                                       {1, 1, c.c, 0, 0},
                                                                       nullptr});
  } else if (parity_classes(c) == 1) {
    launch_mma<T>(stream, plan.tiles, class_problem<T>(c, 0, dy, w, dx));
  } else {
    by_classes<T>(stream, plan, dy, w, dx);
  }
}

}  // namespace

void mma_input_gradient(Stream& stream, const MmaPlan& plan, ConstBuffer dy, ConstBuffer w,
                        Buffer dx) {
  if (dy.dtype == DType::bf16) {
    input_gradient<Bf16>(stream, plan, dy, w, dx);
  } else {
    input_gradient<float>(stream, plan, dy, w, dx);
  }
}

}  // namespace convoy::CONVOY_GPU
