// Convolution and linear in fp32 on CUDA cores: tiled implicit products over channels-last tensors.
// Each function returns false, with nothing queued, where it does not apply: other dtypes, layouts,
// groups, dilation, and rows or addresses that are not whole vectors of 16 bytes.
#pragma once

#include "kernels/base/stream.h"
#include "kernels/cuda/platform.h"
#include "kernels/shapes.h"

namespace convoy::CONVOY_GPU {

/// Side of the tile that a block computes: 128, 64 (less work per load, more blocks), or chosen by
/// the shape.
enum class SimtTileSize : int { chosen = 0, small = 64, large = 128 };

bool simt_conv2d_forward(Stream& stream, const Conv2dShape& shape, ConstBuffer x, ConstBuffer w,
                         ConstBuffer b, Buffer y, SimtTileSize tile = SimtTileSize::chosen);
bool simt_conv2d_input_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer dy,
                                ConstBuffer w, Buffer dx, SimtTileSize tile = SimtTileSize::chosen);
bool simt_conv2d_weight_gradient(Stream& stream, const Conv2dShape& shape, ConstBuffer x,
                                 ConstBuffer dy, Buffer dw,
                                 SimtTileSize tile = SimtTileSize::chosen);

bool simt_linear_forward(Stream& stream, const LinearShape& shape, ConstBuffer x, ConstBuffer w,
                         ConstBuffer b, Buffer y, SimtTileSize tile = SimtTileSize::chosen);
bool simt_linear_input_gradient(Stream& stream, const LinearShape& shape, ConstBuffer dy,
                                ConstBuffer w, Buffer dx, SimtTileSize tile = SimtTileSize::chosen);
bool simt_linear_weight_gradient(Stream& stream, const LinearShape& shape, ConstBuffer x,
                                 ConstBuffer dy, Buffer dw,
                                 SimtTileSize tile = SimtTileSize::chosen);

}  // namespace convoy::CONVOY_GPU
