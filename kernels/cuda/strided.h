// Where the elements of a tensor (a, b, h, w) lie, for kernels that take every layout.
#pragma once

#include "kernels/cuda/layout.h"

namespace convoy::CONVOY_GPU {

/// Strides in elements; b is stored in `stored_b` channels of which those past extent b are zero.
struct Strided {
  std::int64_t a, b, h, w;  // extents
  std::int64_t stored_b;
  std::int64_t stride_a, stride_b, stride_h, stride_w;

  CONVOY_HOST_DEVICE std::int64_t at(std::int64_t i, std::int64_t j, std::int64_t y,
                                     std::int64_t x) const {
    return i * stride_a + j * stride_b + y * stride_h + x * stride_w;
  }
  CONVOY_HOST_DEVICE std::int64_t stored() const { return a * stored_b * h * w; }
};

/// An element's indices.
struct Index4 {
  std::int64_t a, b, h, w;
};

/// The element stored at `offset` (of 0..stored()-1).
CONVOY_HOST_DEVICE inline Index4 index_of(const Strided& t, std::int64_t offset) {
  const bool last = t.stride_b == 1 && t.stride_w != 1;  // channels run fastest
  const std::int64_t inner = last ? t.stored_b : t.w, outer = offset / inner;
  if (last) return {outer / t.w / t.h, offset % inner, outer / t.w % t.h, outer % t.w};
  return {outer / t.h / t.stored_b, outer / t.h % t.stored_b, outer % t.h, offset % inner};
}

/// `shape` (rank 4) in `layout`; `internal` for a layout that is none.
Strided strided(LayoutId layout, const Shape& shape);

}  // namespace convoy::CONVOY_GPU
