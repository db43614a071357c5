#include "kernels/cuda/layout.h"

#include "kernels/base/error.h"
#include "kernels/cuda/kernels.h"

namespace convoy::CONVOY_GPU {

std::size_t layout_bytes(LayoutId layout, const Shape& shape, DType dtype) {
  if (layout == kPlain) return bytes_of(shape, dtype);
  CONVOY_DCHECK(layout == kChannelsLast || layout == kChannelsLast4,
                "layout_bytes: layout {} is none of GPUs, expected 0 to {}", layout,
                kChannelsLast4);
  CONVOY_DCHECK(shape.rank() == 4, "layout_bytes: {} in layout {}, expected four extents",
                to_string(shape), layout);
  return bytes_of(shape.with(1, stored_channels(layout, shape[1])), dtype);
}

}  // namespace convoy::CONVOY_GPU
