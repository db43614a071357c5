// Linear layers, and with them convolutions of 1x1 and stride 1, as plain matrix products in fp32.
#include "kernels/cuda/simt_product.h"
#include "kernels/cuda/sum_pieces.h"

namespace convoy::CONVOY_GPU {
namespace {

// y (rows, out) = x (rows, in) w (out, in)^T + b
struct ForwardProduct {
  int rows, in, out;
  const float *x, *w, *b;
  float* y;

  CONVOY_HOST_DEVICE int columns() const { return out; }
  template <int kSize>
  __device__ __forceinline__ void run(typename SimtTile<kSize>::Storage& shared, int first_row,
                                      int first_column) const {
    typename SimtTile<kSize>::Sums sums = {};
    multiply<kSize>(shared, DenseRows<kSize>({x, rows, in, in}, first_row),
                    DenseRows<kSize>({w, out, in, in}, first_column), tiles_of(in, kDepthStep),
                    sums);
    write_tile<kSize>(sums, first_row, first_column, out, b,
                      [&](int row) { return row < rows ? y + std::int64_t{row} * out : nullptr; });
  }
};

// dx (rows, in) = dy (rows, out) w (out, in)
struct InputGradientProduct {
  int rows, in, out;
  const float *dy, *w;
  float* dx;

  CONVOY_HOST_DEVICE int columns() const { return in; }
  template <int kSize>
  __device__ __forceinline__ void run(typename SimtTile<kSize>::Storage& shared, int first_row,
                                      int first_column) const {
    typename SimtTile<kSize>::Sums sums = {};
    multiply<kSize>(shared, DenseRows<kSize>({dy, rows, out, out}, first_row),
                    DenseColumns<kSize>({w, in, in, 0, out}, first_column),
                    tiles_of(out, kDepthStep), sums);
    write_tile<kSize>(sums, first_row, first_column, in, nullptr,
                      [&](int row) { return row < rows ? dx + std::int64_t{row} * in : nullptr; });
  }
};

// dw (out, in) = dy (rows, out)^T x (rows, in), in pieces of `length` rows
struct WeightGradientProduct {
  int rows, in, out, length;
  const float *x, *dy;
  float* pieces;

  CONVOY_HOST_DEVICE int columns() const { return in; }
  template <int kSize>
  __device__ __forceinline__ void run(typename SimtTile<kSize>::Storage& shared, int first_row,
                                      int first_column) const {
    const int begin = static_cast<int>(blockIdx.z) * length, end = min(begin + length, rows);
    typename SimtTile<kSize>::Sums sums = {};
    multiply<kSize>(shared, DenseColumns<kSize>({dy, out, out, begin, end}, first_row),
                    DenseColumns<kSize>({x, in, in, begin, end}, first_column),
                    tiles_of(end - begin, kDepthStep), sums);
    float* const piece = pieces + std::int64_t{blockIdx.z} * out * in;
    write_tile<kSize>(sums, first_row, first_column, in, nullptr, [&](int row) {
      return row < out ? piece + std::int64_t{row} * in : nullptr;
    });
  }
};

// Rows of whole vectors, extents of 32 bits (the tallest tile may reach past the last row).
bool applies(const LinearShape& s) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1024;
  return s.in % 4 == 0 && s.out % 4 == 0 && s.rows > 0 && s.in > 0 && s.out > 0 && s.rows < kMost &&
         s.in < kMost && s.out < kMost;
}

}  // namespace

bool simt_linear_forward(Stream& stream, const LinearShape& s, ConstBuffer x, ConstBuffer w,
                         ConstBuffer b, Buffer y, SimtTileSize tile) {
  if (!applies(s) || !are_float_vectors({x, w, b, y})) return false;
  const ForwardProduct product{static_cast<int>(s.rows),
                               static_cast<int>(s.in),
                               static_cast<int>(s.out),
                               x.as<float>(),
                               w.as<float>(),
                               b.as<float>(),
                               y.as<float>()};
  launch_simt(stream, product, product.rows, 1, simt_tile(s.rows, s.out, 1, tile));
  return true;
}

bool simt_linear_input_gradient(Stream& stream, const LinearShape& s, ConstBuffer dy, ConstBuffer w,
                                Buffer dx, SimtTileSize tile) {
  if (!applies(s) || !are_float_vectors({dy, w, dx})) return false;
  const InputGradientProduct product{
      static_cast<int>(s.rows), static_cast<int>(s.in), static_cast<int>(s.out),
      dy.as<float>(),           w.as<float>(),          dx.as<float>()};
  launch_simt(stream, product, product.rows, 1, simt_tile(s.rows, s.in, 1, tile));
  return true;
}

bool simt_linear_weight_gradient(Stream& stream, const LinearShape& s, ConstBuffer x,
                                 ConstBuffer dy, Buffer dw, SimtTileSize tile) {
  if (!applies(s) || !are_float_vectors({x, dy, dw})) return false;
  const WeightGradientPlan plan = simt_weight_gradient_plan(s.out, s.in, s.rows, tile);
  const std::int64_t values = s.out * s.in;
  float* const pieces = pieces_of(stream, plan.split, values, dw.as<float>());
  const WeightGradientProduct product{static_cast<int>(s.rows),
                                      static_cast<int>(s.in),
                                      static_cast<int>(s.out),
                                      plan.split.length,
                                      x.as<float>(),
                                      dy.as<float>(),
                                      pieces};
  launch_simt(stream, product, product.out, plan.split.count, plan.tile);
  if (plan.split.count > 1) sum_pieces(stream, plan.split.count, values, pieces, dw.as<float>());
  return true;
}

}  // namespace convoy::CONVOY_GPU
