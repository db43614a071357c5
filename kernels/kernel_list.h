// The seam between ops and backends: one line per kernel. The list is expanded as declarations in
// the namespace of each backend, as the function pointers of KernelTable, and in each backend's
// table.cpp as the initialiser of its one table. A kernel that a backend lacks is a link error that
// names it.
//
// Kernels return at once; their work runs in the order of the stream. Buffers are on the stream's
// device and live until that work is done. `scale`d sums, statistics and norms are taken in double.
// Buffers of one elementwise call share one layout and dtype, and `count` is the number of stored
// elements, padding included (padding is zero and stays zero).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/base/buffer.h"
#include "kernels/base/stream.h"
#include "kernels/shapes.h"

namespace convoy {

enum class Unary : int;
enum class Binary : int;

// CONVOY_KERNEL(return type, name, (arguments))
//
// Layouts. layout_bytes: memory of a tensor in a layout. reorder: same values, other layout, same
// dtype. conv2d_layouts: what the convolution likes best for this shape.
//
// Convolution. b and db (k) may be left out.
//
// Batch norm. Statistics (mean, m2 of BatchNormStatistics) are f64 on cpu and ref.
//   statistics: of x per channel.
//   merge: total += part 0, then part 1, ..., by Chan's formula; parts and total lie as
//     PackedStatistics, parts one behind the other. Count 0 on either side is allowed; a total of 1
//     is a `usage` error of the stream.
//   update: running = (1 - momentum) * running + momentum * (mean, m2 / (count - 1)); a batch of
//     count 0 changes nothing.
//   mask_bytes: memory of the ReLU's mask for x in this layout, a bit or so per element (u8, plain,
//     in an order of the backend's own); 0: the backend keeps none.
//   apply: y = gamma * (x - mean) * rstd + beta (+ residual) (then ReLU). residual may be left out,
//     and so may mask: where y > 0 or is NaN.
//   backward_reduce: with dz = relu ? dy where y > 0 : dy: sum_dz and sum_dz_xhat (c, f64). With
//     relu either y or the mask is given.
//   backward_apply: dx = gamma * rstd * (dz - sum_dz / n - xhat * sum_dz_xhat / n) with n the
//     count of the statistics, which may be those of a larger group than x; sums left out: dx =
//     gamma * rstd * dz (frozen). dresidual = dz, may be left out.
//
// Pooling. index: position of the maximum in its window (row * kernel_w + column), u8, in y's
// layout; padding counts as -inf; first maximum in window order, NaN wins. y may have x's layout or
// kPlain.
//
// Loss. loss (1) = sum of rows * scale, dlogits and dx for a loss gradient of 1. labels i64; one
// out of 0..classes-1 is a `data` error of the stream.
//
// reduce_sum: y (outer, inner) = scale * sum over reduced; broadcast: the reverse, y = scale * x.
// sum_of_squares: result[i] (f64) of each buffer. Everything here is kPlain but sum_of_squares.
// scale: x *= factor, in place. cast: other dtype, same layout id (kPlain where what an id means
// depends on the size of the type).
#define CONVOY_KERNEL_LIST(CONVOY_KERNEL)                                                         \
  CONVOY_KERNEL(std::size_t, layout_bytes, (LayoutId layout, const Shape& shape, DType dtype))    \
  CONVOY_KERNEL(void, reorder, (Stream & stream, const Shape& shape, ConstBuffer x, Buffer y))    \
  CONVOY_KERNEL(Conv2dLayouts, conv2d_layouts, (const Conv2dShape& shape, DType dtype))           \
  CONVOY_KERNEL(void, conv2d_forward,                                                             \
                (Stream & stream, const Conv2dShape& shape, ConstBuffer x, ConstBuffer w,         \
                 ConstBuffer b, Buffer y))                                                        \
  CONVOY_KERNEL(                                                                                  \
      void, conv2d_input_gradient,                                                                \
      (Stream & stream, const Conv2dShape& shape, ConstBuffer dy, ConstBuffer w, Buffer dx))      \
  CONVOY_KERNEL(void, conv2d_weight_gradient,                                                     \
                (Stream & stream, const Conv2dShape& shape, ConstBuffer x, ConstBuffer dy,        \
                 Buffer dw, Buffer db))                                                           \
  CONVOY_KERNEL(void, linear_forward,                                                             \
                (Stream & stream, const LinearShape& shape, ConstBuffer x, ConstBuffer w,         \
                 ConstBuffer b, Buffer y))                                                        \
  CONVOY_KERNEL(                                                                                  \
      void, linear_input_gradient,                                                                \
      (Stream & stream, const LinearShape& shape, ConstBuffer dy, ConstBuffer w, Buffer dx))      \
  CONVOY_KERNEL(void, linear_weight_gradient,                                                     \
                (Stream & stream, const LinearShape& shape, ConstBuffer x, ConstBuffer dy,        \
                 Buffer dw, Buffer db))                                                           \
  CONVOY_KERNEL(                                                                                  \
      void, batch_norm_statistics,                                                                \
      (Stream & stream, const BatchNormShape& shape, ConstBuffer x, Buffer mean, Buffer m2))      \
  CONVOY_KERNEL(void, batch_norm_merge,                                                           \
                (Stream & stream, const PackedStatistics& packed, std::int64_t parts,             \
                 ConstBuffer from, Buffer total))                                                 \
  CONVOY_KERNEL(void, batch_norm_update,                                                          \
                (Stream & stream, std::int64_t channels, const BatchNormStatistics& batch,        \
                 double momentum, Buffer running_mean, Buffer running_var))                       \
  CONVOY_KERNEL(std::size_t, batch_norm_mask_bytes,                                               \
                (const BatchNormShape& shape, LayoutId layout, DType dtype))                      \
  CONVOY_KERNEL(void, batch_norm_apply,                                                           \
                (Stream & stream, const BatchNormShape& shape, ConstBuffer x,                     \
                 const BatchNormStatistics& statistics, double epsilon, ConstBuffer gamma,        \
                 ConstBuffer beta, ConstBuffer residual, bool relu, Buffer y, Buffer mask))       \
  CONVOY_KERNEL(void, batch_norm_backward_reduce,                                                 \
                (Stream & stream, const BatchNormShape& shape, ConstBuffer x, ConstBuffer y,      \
                 ConstBuffer mask, ConstBuffer dy, const BatchNormStatistics& statistics,         \
                 double epsilon, bool relu, Buffer sum_dz, Buffer sum_dz_xhat))                   \
  CONVOY_KERNEL(void, batch_norm_backward_apply,                                                  \
                (Stream & stream, const BatchNormShape& shape, ConstBuffer x, ConstBuffer y,      \
                 ConstBuffer mask, ConstBuffer dy, const BatchNormStatistics& statistics,         \
                 double epsilon, bool relu, ConstBuffer gamma, ConstBuffer sum_dz,                \
                 ConstBuffer sum_dz_xhat, Buffer dx, Buffer dresidual))                           \
  CONVOY_KERNEL(void, unary_forward,                                                              \
                (Stream & stream, Unary op, std::int64_t count, ConstBuffer x, Buffer y))         \
  CONVOY_KERNEL(void, unary_backward,                                                             \
                (Stream & stream, Unary op, std::int64_t count, ConstBuffer x, ConstBuffer y,     \
                 ConstBuffer dy, Buffer dx))                                                      \
  CONVOY_KERNEL(                                                                                  \
      void, binary_forward,                                                                       \
      (Stream & stream, Binary op, std::int64_t count, ConstBuffer a, ConstBuffer b, Buffer y))   \
  CONVOY_KERNEL(void, binary_backward,                                                            \
                (Stream & stream, Binary op, std::int64_t count, ConstBuffer a, ConstBuffer b,    \
                 ConstBuffer dy, Buffer da, Buffer db))                                           \
  CONVOY_KERNEL(void, fill, (Stream & stream, std::int64_t count, double value, Buffer x))        \
  CONVOY_KERNEL(void, scale, (Stream & stream, std::int64_t count, double factor, Buffer x))      \
  CONVOY_KERNEL(void, cast, (Stream & stream, std::int64_t count, ConstBuffer x, Buffer y))       \
  CONVOY_KERNEL(                                                                                  \
      void, max_pool2d_forward,                                                                   \
      (Stream & stream, const Pool2dShape& shape, ConstBuffer x, Buffer y, Buffer index))         \
  CONVOY_KERNEL(                                                                                  \
      void, max_pool2d_backward,                                                                  \
      (Stream & stream, const Pool2dShape& shape, ConstBuffer dy, ConstBuffer index, Buffer dx))  \
  CONVOY_KERNEL(void, avg_pool2d_forward,                                                         \
                (Stream & stream, const Pool2dShape& shape, ConstBuffer x, Buffer y))             \
  CONVOY_KERNEL(void, avg_pool2d_backward,                                                        \
                (Stream & stream, const Pool2dShape& shape, ConstBuffer dy, Buffer dx))           \
  CONVOY_KERNEL(void, softmax_cross_entropy,                                                      \
                (Stream & stream, const CrossEntropyShape& shape, ConstBuffer logits,             \
                 ConstBuffer labels, Buffer loss, Buffer dlogits))                                \
  CONVOY_KERNEL(void, mse,                                                                        \
                (Stream & stream, std::int64_t count, double scale, ConstBuffer x,                \
                 ConstBuffer target, Buffer loss, Buffer dx))                                     \
  CONVOY_KERNEL(                                                                                  \
      void, reduce_sum,                                                                           \
      (Stream & stream, const ReduceShape& shape, double scale, ConstBuffer x, Buffer y))         \
  CONVOY_KERNEL(                                                                                  \
      void, broadcast,                                                                            \
      (Stream & stream, const ReduceShape& shape, double scale, ConstBuffer x, Buffer y))         \
  CONVOY_KERNEL(void, sum_of_squares,                                                             \
                (Stream & stream, const std::vector<ConstBuffer>& x,                              \
                 const std::vector<std::int64_t>& counts, Buffer result))                         \
  CONVOY_KERNEL(void, sgd_update,                                                                 \
                (Stream & stream, const std::vector<OptimizerSlot>& slots, const SgdArgs& args))  \
  CONVOY_KERNEL(void, lars_update,                                                                \
                (Stream & stream, const std::vector<OptimizerSlot>& slots, const LarsArgs& args)) \
  CONVOY_KERNEL(void, adamw_update,                                                               \
                (Stream & stream, const std::vector<OptimizerSlot>& slots, const AdamwArgs& args))

/// The kernels of one backend.
struct KernelTable {
#define CONVOY_MEMBER(result, name, arguments) result(*name) arguments;
  CONVOY_KERNEL_LIST(CONVOY_MEMBER)
#undef CONVOY_MEMBER
};

/// Declares all kernels in the current namespace: for a backend's header.
#define CONVOY_DECLARE_KERNEL(result, name, arguments) result name arguments;

}  // namespace convoy
