// The reference backend has one layout, so that a reorder is a copy.
#include <cstring>

#include "kernels/reference/common.h"
#include "kernels/reference/reference.h"

namespace convoy::reference {

std::size_t layout_bytes(LayoutId layout, const Shape& shape, DType dtype) {
  CONVOY_DCHECK(layout == kPlain, "layout_bytes: layout {} is none of ref, expected plain", layout);
  return bytes_of(shape, dtype);
}

void reorder(Stream& stream, const Shape& shape, ConstBuffer x, Buffer y) {
  const DType dtype = common_dtype("reorder", {x, y});
  const std::size_t bytes = layout_bytes(y.layout, shape, dtype);
  host(stream).submit([=] {
    if (bytes > 0) std::memmove(y.data, x.data, bytes);
  });
}

}  // namespace convoy::reference
