// Layouts of the GPU backends.
//
//     0    plain: NCHW, KCRS, row-major
//     1    channels last: a tensor (a, b, h, w) stored as (a, h, w, b): NHWC activations, KRSC
//     weights 2    the same with b padded by zeros to a multiple of 4: images of three channels
#pragma once

#include "kernels/base/buffer.h"
#include "kernels/base/shape.h"
#include "kernels/cuda/platform.h"

namespace convoy::CONVOY_GPU {

inline constexpr LayoutId kChannelsLast = 1;
inline constexpr LayoutId kChannelsLast4 = 2;

/// Second extent as it is stored.
inline std::int64_t stored_channels(LayoutId layout, std::int64_t channels) {
  return layout == kChannelsLast4 ? (channels + 3) / 4 * 4 : channels;
}

}  // namespace convoy::CONVOY_GPU
