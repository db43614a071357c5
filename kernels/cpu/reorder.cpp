// Sizes of layouts, and copies between them.
#include <cstring>

#include "kernels/base/error.h"
#include "kernels/base/host_stream.h"
#include "kernels/cpu/checks.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/staging.h"
#include "kernels/cpu/weight_layouts.h"

namespace convoy::cpu {

std::size_t layout_bytes(LayoutId layout, const Shape& shape, DType dtype) {
  if (layout >= kFirstWeightLayout) {
    CONVOY_DCHECK(dtype == DType::f32, "layout_bytes: weights in layout {} are f32, not {}", layout,
                  name(dtype));
    return weight_bytes(layout, shape);
  }
  CONVOY_DCHECK(is_activation_layout(layout), "layout_bytes: layout {} is unknown", layout);
  if (layout == kPlain) return bytes_of(shape, dtype);
  const ActivationShape a(shape);
  const std::int64_t block = block_of(layout);
  return bytes_of({a.n, (a.c + block - 1) / block, a.spatial, block}, dtype);
}

void reorder(Stream& stream, const Shape& shape, ConstBuffer x, Buffer y) {
  CONVOY_DCHECK(x.dtype == y.dtype, "reorder: from {} to {}", name(x.dtype), name(y.dtype));
  if (x.layout == y.layout) {
    const std::size_t bytes = layout_bytes(x.layout, shape, x.dtype);
    host(stream).submit([=] { std::memcpy(y.data, x.data, bytes); });
    return;
  }
  require_values("reorder", stream, {x, y});
  if (x.layout >= kFirstWeightLayout || y.layout >= kFirstWeightLayout) {
    require_f32("reorder", stream, {x, y});
    submit_weight_reorder(stream, shape, x, y);
    return;
  }
  require_activation("reorder", {{"x", x}, {"y", y}});
  submit_reorder(stream, shape, x, y);
}

}  // namespace convoy::cpu
