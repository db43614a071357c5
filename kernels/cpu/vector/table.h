// The loops that are compiled once per instruction set. The files of this folder hold no standard
// templates and no shared inline functions: the linker keeps one copy of those, and it could be one
// with instructions that this machine lacks. So everything here is plain loops over plain types in
// a namespace per instruction set; threads, checks and layouts are the callers' business.
//
// Most functions work on a "run": contiguous floats of one image and one channel block, where
// element i belongs to lane i % 16. In nChw16c a lane is a channel, in nChw8c lanes l and l + 8
// are, in plain layout all 16 lanes are one channel: `period` is 16, 8 or 1.
#pragma once

#include <cstdint>

namespace convoy::cpu {

inline constexpr int kRowLanes = 16;

/// Sizes of a pooling of one image and channel block.
struct PoolGeometry {
  std::int64_t h, w, out_h, out_w;
  std::int64_t kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w;
  bool count_padding;
};

/// y = k_dz * dz + k_x * (x - mean) + k, each per lane.
struct BatchNormGradient {
  const float *mean, *k_dz, *k_x, *k;
};

/// The gradient of a batch norm's output, and what tells where it passes the ReLU: one bit an
/// element (16 to a word, a run's last word may be part of one), or the output, or nothing: there
/// is no ReLU.
template <class T>
struct BatchNormPassedOf {
  const T* dy;
  const std::uint16_t* bits;
  const T* y;
};
using BatchNormPassed = BatchNormPassedOf<float>;

/// Unrolled by one column: im2col of one channel.
struct UnrollGeometry {
  std::int64_t h, w, r, s, out_h, out_w;
  std::int64_t stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w;
};

/// Factors of SGD and LARS.
struct MomentumStep {
  float lr, momentum, gradient_factor, decay, keep;  // keep = 1 - dampening
  bool nesterov, first;
};

/// Factors of AdamW, with the bias corrections folded in.
struct AdamwStep {
  float beta1, beta2, keep1, keep2, gradient_factor, shrink, rate, correction2, epsilon;
};

/// What all numbers of a random stream depend on.
struct RandomKey {
  std::uint64_t seed, stream;
};

/// A matrix with any strides; part of a product.
struct GemmOperand {
  const float* data;
  std::int64_t row_stride, column_stride;
};

/// Results and inputs of a tile of Winograd's convolution, along one side, and its products.
inline constexpr int kWinogradOut = 4, kWinogradIn = 6, kWinogradPoints = kWinogradIn * kWinogradIn;

/// Tiles first ... first + count of images (h, w) of `blocks` channel blocks: row-major, image
/// after image.
struct WinogradTiles {
  std::int64_t h, w, blocks, first, count;
};

/// Weights of a 3x3 convolution: strides of blocks of a vector's lanes, of taps, and in a block.
/// The input gradient reads them turned by half a turn, with outputs for inputs.
struct WinogradWeights {
  float* data;
  std::int64_t in_block, out_block, tap, in, out;
  bool turned;
};

// CONVOY_VECTOR(return type, name, (arguments)); sums are over runs or ranges, in double.
#define CONVOY_VECTOR_LIST(CONVOY_VECTOR)                                                          \
  CONVOY_VECTOR(void, batch_norm_statistics,                                                       \
                (const float* x, std::int64_t count, int period, double* mean, double* m2))        \
  CONVOY_VECTOR(                                                                                   \
      void, batch_norm_apply,                                                                      \
      (const float* x, const float* residual, std::int64_t count, const float* mean,               \
       const float* scale, const float* shift, bool relu, float* y, std::uint16_t* bits))          \
  CONVOY_VECTOR(void, batch_norm_reduce,                                                           \
                (const float* x, const BatchNormPassed& passed, std::int64_t count, int period,    \
                 const double* mean, double* sum_dz, double* sum_dz_x))                            \
  CONVOY_VECTOR(void, batch_norm_gradient,                                                         \
                (const float* x, const BatchNormPassed& passed, std::int64_t count,                \
                 const BatchNormGradient& factors, float* dx, float* dresidual))                   \
  CONVOY_VECTOR(                                                                                   \
      void, max_pool_forward,                                                                      \
      (const PoolGeometry& shape, int period, const float* x, float* y, std::uint8_t* index))      \
  CONVOY_VECTOR(void, max_pool_backward,                                                           \
                (const PoolGeometry& shape, int period, const float* dy,                           \
                 const std::uint8_t* index, float* dx))                                            \
  CONVOY_VECTOR(void, avg_pool_forward,                                                            \
                (const PoolGeometry& shape, int period, const float* x, float* y))                 \
  CONVOY_VECTOR(void, avg_pool_backward,                                                           \
                (const PoolGeometry& shape, int period, const float* dy, float* dx))               \
  CONVOY_VECTOR(                                                                                   \
      void, to_blocks,                                                                             \
      (const float* x, std::int64_t channels, std::int64_t spatial, int block, float* y))          \
  CONVOY_VECTOR(                                                                                   \
      void, from_blocks,                                                                           \
      (const float* x, std::int64_t channels, std::int64_t spatial, int block, float* y))          \
  CONVOY_VECTOR(void, unary_forward, (int op, std::int64_t count, const float* x, float* y))       \
  CONVOY_VECTOR(                                                                                   \
      void, unary_backward,                                                                        \
      (int op, std::int64_t count, const float* x, const float* y, const float* dy, float* dx))    \
  CONVOY_VECTOR(void, binary_forward,                                                              \
                (int op, std::int64_t count, const float* a, const float* b, float* y))            \
  CONVOY_VECTOR(void, binary_backward,                                                             \
                (int op, std::int64_t count, const float* a, const float* b, const float* dy,      \
                 float* da, float* db))                                                            \
  CONVOY_VECTOR(void, fill, (std::int64_t count, float value, float* x))                           \
  CONVOY_VECTOR(void, scale, (std::int64_t count, float factor, const float* x, float* y))         \
  CONVOY_VECTOR(double, sum, (std::int64_t count, const float* x))                                 \
  CONVOY_VECTOR(double, sum_of_squares, (std::int64_t count, const float* x))                      \
  CONVOY_VECTOR(void, sum_rows,                                                                    \
                (std::int64_t rows, std::int64_t row_stride, std::int64_t width, double factor,    \
                 const float* x, float* y))                                                        \
  CONVOY_VECTOR(                                                                                   \
      double, mse,                                                                                 \
      (std::int64_t count, const float* x, const float* target, float factor, float* dx))          \
  CONVOY_VECTOR(void, sgd,                                                                         \
                (std::int64_t count, const MomentumStep& step, const float* gradient,              \
                 float* momentum, float* weight))                                                  \
  CONVOY_VECTOR(void, lars,                                                                        \
                (std::int64_t count, const MomentumStep& step, const float* gradient,              \
                 float* momentum, float* weight))                                                  \
  CONVOY_VECTOR(void, adamw,                                                                       \
                (std::int64_t count, const AdamwStep& step, const float* gradient, float* moment1, \
                 float* moment2, float* weight))                                                   \
  CONVOY_VECTOR(void, random_uniform,                                                              \
                (const RandomKey& key, std::uint64_t block, std::int64_t count, double* y))        \
  CONVOY_VECTOR(void, random_normal,                                                               \
                (const RandomKey& key, std::uint64_t block, std::int64_t count, double* y))        \
  CONVOY_VECTOR(void, unroll, (const UnrollGeometry& shape, const float* x, float* columns))       \
  CONVOY_VECTOR(void, roll, (const UnrollGeometry& shape, const float* columns, float* x))         \
  CONVOY_VECTOR(double, multiply_add,                                                              \
                (std::int64_t rounds, float factor, float summand, float* result))                 \
  CONVOY_VECTOR(void, gemm_tile,                                                                   \
                (std::int64_t m, std::int64_t n, std::int64_t k, GemmOperand a, GemmOperand b,     \
                 bool add, float* c, std::int64_t ldc, float* pack))                               \
  CONVOY_VECTOR(void, winograd_input,                                                              \
                (const WinogradTiles& geometry, std::int64_t block, const float* x, float* tiles,  \
                 std::int64_t stride))                                                             \
  CONVOY_VECTOR(void, winograd_output,                                                             \
                (const WinogradTiles& geometry, std::int64_t block, const float* tiles,            \
                 std::int64_t stride, float* y))                                                   \
  CONVOY_VECTOR(void, winograd_output_gradient,                                                    \
                (const WinogradTiles& geometry, std::int64_t block, const float* dy, float* tiles, \
                 std::int64_t stride))                                                             \
  CONVOY_VECTOR(void, winograd_weights,                                                            \
                (const WinogradWeights& weights, std::int64_t inputs, std::int64_t panel,          \
                 float* factors, std::int64_t stride))                                             \
  CONVOY_VECTOR(void, winograd_weight_gradient,                                                    \
                (const WinogradWeights& weights, std::int64_t in_block, std::int64_t outputs,      \
                 int parts, std::int64_t part_stride, const float* sums, std::int64_t stride))     \
  CONVOY_VECTOR(void, winograd_multiply,                                                           \
                (std::int64_t count, std::int64_t inputs, std::int64_t outputs,                    \
                 const float* tiles, const float* factors, float* products))                       \
  CONVOY_VECTOR(void, winograd_accumulate,                                                         \
                (std::int64_t count, std::int64_t inputs, std::int64_t outputs, const float* x,    \
                 const float* dy, bool add, float* sums))

/// The loops of one instruction set.
struct VectorTable {
#define CONVOY_MEMBER(result, name, arguments) result(*name) arguments;
  CONVOY_VECTOR_LIST(CONVOY_MEMBER)
#undef CONVOY_MEMBER
};

/// Declares the loops of instruction set `isa`, and their table.
#define CONVOY_DECLARE_VECTOR(result, name, arguments) result name arguments;

namespace baseline {
CONVOY_VECTOR_LIST(CONVOY_DECLARE_VECTOR)
extern const VectorTable vector_table;
}  // namespace baseline
namespace avx2 {
CONVOY_VECTOR_LIST(CONVOY_DECLARE_VECTOR)
extern const VectorTable vector_table;
}  // namespace avx2
namespace avx512 {
CONVOY_VECTOR_LIST(CONVOY_DECLARE_VECTOR)
extern const VectorTable vector_table;
}  // namespace avx512

// gemm_tile: largest tile, and the floats of `pack` that it needs.
inline constexpr std::int64_t kGemmRows = 96, kGemmColumns = 384, kGemmDepth = 256;
inline constexpr std::int64_t kGemmPack = (kGemmRows + kGemmColumns + 64) * kGemmDepth;

}  // namespace convoy::cpu
