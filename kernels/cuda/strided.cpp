#include "kernels/cuda/strided.h"

#include "kernels/base/error.h"

namespace convoy::CONVOY_GPU {

Strided strided(LayoutId layout, const Shape& shape) {
  CONVOY_DCHECK(layout >= kPlain && layout <= kChannelsLast4,
                "layout {} is unknown, expected 0, 1 or 2", layout);
  const std::int64_t h = shape[2], w = shape[3];
  if (layout == kPlain) return {shape[0], shape[1], h, w, shape[1], shape[1] * h * w, h * w, w, 1};
  const std::int64_t b = stored_channels(layout, shape[1]);
  return {shape[0], shape[1], h, w, b, h * w * b, 1, w * b, b};
}

}  // namespace convoy::CONVOY_GPU
