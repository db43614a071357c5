// Convolution and linear on tensor cores (sm_80 and newer): bf16 operands, or f32 rounded to TF32
// where the stream allows that, summed in f32. Each function returns false, with nothing queued,
// where it does not apply: see mma_plan().
#pragma once

#include <optional>

#include "kernels/base/stream.h"
#include "kernels/cuda/conv2d_problem.h"
#include "kernels/cuda/platform.h"

namespace convoy::CONVOY_GPU {

enum class ConvPass { forward, input_gradient, weight_gradient };

/// Tiles of the result that a block computes.
enum class MmaTiles { k128x128, k128x64, k64x64 };

/// How a pass is computed: a function of the shape alone, for another tile or split would give
/// other bits.
struct MmaPlan {
  ConvProblem problem;
  MmaTiles tiles;
  int piece;         ///< bytes of a copy of x (and w): 16; 8 for other bf16 images of 4 channels
  DepthSplit split;  ///< of the weight gradient
  std::optional<FilterRows> rows;  ///< given: `problem` is that of pairs of pixels
};

/// The plan of `pass` for tensors of `dtype`, bf16 or f32; of `tiles`, or chosen. Absent where
/// other kernels have to do it: groups, dilation, channels that do not fill 16 bytes (of images: 4
/// values), other layouts and dtypes, filters or strides too large.
std::optional<MmaPlan> mma_plan(ConvPass pass, const Conv2dShape& shape,
                                const Conv2dLayouts& layouts, DType dtype,
                                std::optional<MmaTiles> tiles = {});

/// The tiles for a result of m x n: large ones where they fill a GPU.
MmaTiles mma_tiles(std::int64_t m, std::int64_t n);

bool mma_conv2d_forward(Stream& stream, const Conv2dShape& shape, ConstBuffer x, ConstBuffer w,
                        ConstBuffer b, Buffer y, std::optional<MmaTiles> tiles = {});
bool mma_conv2d_input_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer dy,
                               ConstBuffer w, Buffer dx, std::optional<MmaTiles> tiles = {});
bool mma_conv2d_weight_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer x,
                                ConstBuffer dy, Buffer dw, std::optional<MmaTiles> tiles = {});

bool mma_linear_forward(Stream& stream, const LinearShape& shape, ConstBuffer x, ConstBuffer w,
                        ConstBuffer b, Buffer y);
bool mma_linear_input_gradient(Stream& stream, const LinearShape& shape, ConstBuffer dy,
                               ConstBuffer w, Buffer dx);
bool mma_linear_weight_gradient(Stream& stream, const LinearShape& shape, ConstBuffer x,
                                ConstBuffer dy, Buffer dw);

/// The passes as planned, without a look at the operands.
void mma_forward(Stream& stream, const MmaPlan& plan, ConstBuffer x, ConstBuffer w, ConstBuffer b,
                 Buffer y);
void mma_input_gradient(Stream& stream, const MmaPlan& plan, ConstBuffer dy, ConstBuffer w,
                        Buffer dx);
void mma_weight_gradient(Stream& stream, const MmaPlan& plan, ConstBuffer x, ConstBuffer dy,
                         Buffer dw);

}  // namespace convoy::CONVOY_GPU
