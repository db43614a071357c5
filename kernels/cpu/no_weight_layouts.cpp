// Without a convolution library weights are always plain.
#include "kernels/base/error.h"
#include "kernels/cpu/weight_layouts.h"

namespace convoy::cpu {

std::size_t weight_bytes(LayoutId layout, const Shape& shape) {
  CONVOY_FAIL(internal, "layout_bytes: layout {} of {} is unknown to this build", layout,
              to_string(shape));
}

void submit_weight_reorder(Stream&, const Shape& shape, ConstBuffer x, Buffer y) {
  CONVOY_FAIL(internal, "reorder: layouts {} and {} of {}: this build knows no weight layouts",
              x.layout, y.layout, to_string(shape));
}

}  // namespace convoy::cpu
