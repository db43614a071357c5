// The three passes of convolution as implicit products in fp32. 1x1 filters of stride 1 are linear
// layers over pixels.
#include <algorithm>

#include "kernels/cuda/simt_product.h"
#include "kernels/cuda/sum_pieces.h"

namespace convoy::CONVOY_GPU {
namespace {

struct ForwardProduct {
  ConvProblem c;
  Gather g;
  const float *x, *w, *b;
  float* y;

  CONVOY_HOST_DEVICE int columns() const { return c.k; }
  template <int kSize>
  __device__ __forceinline__ void run(typename SimtTile<kSize>::Storage& shared, int first_row,
                                      int first_column) const {
    const int rows = c.n * g.places(), depth = g.depth();
    typename SimtTile<kSize>::Sums sums = {};
    multiply<kSize>(shared, TapRows<kSize>(g, x, c.n, first_row),
                    DenseRows<kSize>({w, c.k, depth, depth}, first_column),
                    tiles_of(depth, kDepthStep), sums);
    write_tile<kSize>(sums, first_row, first_column, c.k, b,
                      [&](int row) { return row < rows ? y + std::int64_t{row} * c.k : nullptr; });
  }
};

// Part: the parity class, one of the few that parameters of a launch hold: they are constants
// there.
constexpr int kClassesPerLaunch = 4;

struct InputGradientProduct {
  ConvProblem c;
  int first_class;
  Gather classes[kClassesPerLaunch];
  const float *dy, *w;
  float* dx;

  CONVOY_HOST_DEVICE int columns() const { return c.c; }
  template <int kSize>
  __device__ __forceinline__ void run(typename SimtTile<kSize>::Storage& shared, int first_row,
                                      int first_column) const {
    const int part = first_class + static_cast<int>(blockIdx.z);
    const Gather& g = classes[blockIdx.z];
    // Classes have unequal numbers of places; the grid is that of the largest.
    if (first_row < c.n * g.places()) run_class<kSize>(shared, g, part, first_row, first_column);
  }

  template <int kSize>
  __device__ __forceinline__ void run_class(typename SimtTile<kSize>::Storage& shared,
                                            const Gather& g, int part, int first_row,
                                            int first_column) const {
    typename SimtTile<kSize>::Sums sums = {};
    multiply<kSize>(shared, TapRows<kSize>(g, dy, c.n, first_row),
                    TapColumns<kSize>(g, c, w, first_column), tiles_of(g.depth(), kDepthStep),
                    sums);
    write_tile<kSize>(sums, first_row, first_column, c.c, nullptr,
                      [&](int row) { return pixel(g, part, row); });
  }

  // Where row (image, i, j) of a class lies in dx.
  __device__ __forceinline__ float* pixel(const Gather& g, int part, int row) const {
    const int image = row / g.places(), place = row % g.places();
    if (image >= c.n) return nullptr;
    return dx + image * c.x_image() + parity_pixel(c, part, place / g.places_w, place % g.places_w);
  }
};

// Part: the piece of depth.
struct WeightGradientProduct {
  ConvProblem c;
  int length;
  const float *x, *dy;
  float* pieces;

  CONVOY_HOST_DEVICE int columns() const { return c.taps() * c.c; }
  template <int kSize>
  __device__ __forceinline__ void run(typename SimtTile<kSize>::Storage& shared, int first_row,
                                      int first_column) const {
    const int begin = static_cast<int>(blockIdx.z) * length;
    const int end = min(begin + length, c.n * c.p * c.q);
    typename SimtTile<kSize>::Sums sums = {};
    multiply<kSize>(shared, DenseColumns<kSize>({dy, c.k, c.k, begin, end}, first_row),
                    PlaceColumns<kSize>(c, x, begin, end, first_column),
                    tiles_of(end - begin, kDepthStep), sums);
    float* const piece = pieces + std::int64_t{blockIdx.z} * c.k * columns();
    write_tile<kSize>(sums, first_row, first_column, columns(), nullptr, [&](int row) {
      return row < c.k ? piece + std::int64_t{row} * columns() : nullptr;
    });
  }
};

LinearShape as_linear(const ConvProblem& c) {
  return {std::int64_t{c.n} * c.p * c.q, c.c, c.k};
}

// The same operand as a matrix.
template <class B>
B matrix(B buffer) {
  buffer.layout = kPlain;
  return buffer;
}

}  // namespace

bool simt_conv2d_forward(Stream& stream, const Conv2dShape& shape, ConstBuffer x, ConstBuffer w,
                         ConstBuffer b, Buffer y, SimtTileSize tile) {
  const auto c = conv_problem(shape, {x.layout, w.layout, y.layout}, 4);
  if (!c || !are_float_vectors({x, w, b, y})) return false;
  if (is_matrix_product(*c)) {
    return simt_linear_forward(stream, as_linear(*c), matrix(x), matrix(w), b, matrix(y), tile);
  }
  const ForwardProduct product{
      *c, forward_gather(*c), x.as<float>(), w.as<float>(), b.as<float>(), y.as<float>()};
  const int rows = c->n * c->p * c->q;
  launch_simt(stream, product, rows, 1, simt_tile(rows, c->k, 1, tile));
  return true;
}

bool simt_conv2d_input_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer dy,
                                ConstBuffer w, Buffer dx, SimtTileSize tile) {
  const auto c = conv_problem(shape, {dx.layout, w.layout, dy.layout}, 4);
  if (!c || !are_float_vectors({dy, w, dx})) return false;
  if (is_matrix_product(*c)) {
    return simt_linear_input_gradient(stream, as_linear(*c), matrix(dy), matrix(w), matrix(dx),
                                      tile);
  }
  // Class 0 has as many places as any.
  const int rows = c->n * input_gradient_gather(*c, 0).places(), all = parity_classes(*c);
  const SimtTileSize size = simt_tile(rows, c->c, all, tile);
  InputGradientProduct product{*c, 0, {}, dy.as<float>(), w.as<float>(), dx.as<float>()};
  for (int first = 0; first < all; first += kClassesPerLaunch) {
    const int parts = std::min(all - first, kClassesPerLaunch);
    product.first_class = first;
    for (int i = 0; i < parts; ++i) product.classes[i] = input_gradient_gather(*c, first + i);
    launch_simt(stream, product, rows, parts, size);
  }
  return true;
}

bool simt_conv2d_weight_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer x,
                                 ConstBuffer dy, Buffer dw, SimtTileSize tile) {
  const auto c = conv_problem(shape, {x.layout, dw.layout, dy.layout}, 4);
  if (!c || !are_float_vectors({x, dy, dw})) return false;
  if (is_matrix_product(*c)) {
    return simt_linear_weight_gradient(stream, as_linear(*c), matrix(x), matrix(dy), matrix(dw),
                                       tile);
  }
  const int columns = c->taps() * c->c;
  const WeightGradientPlan plan =
      simt_weight_gradient_plan(c->k, columns, std::int64_t{c->n} * c->p * c->q, tile);
  const std::int64_t values = std::int64_t{c->k} * columns;
  float* const pieces = pieces_of(stream, plan.split, values, dw.as<float>());
  const WeightGradientProduct product{*c, plan.split.length, x.as<float>(), dy.as<float>(), pieces};
  launch_simt(stream, product, c->k, plan.split.count, plan.tile);
  if (plan.split.count > 1) {
    sum_pieces(stream, plan.split.count, values, pieces, dw.as<float>());
  }
  return true;
}

}  // namespace convoy::CONVOY_GPU
