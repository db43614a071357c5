#include "kernels/cpu/layout.h"

#include <algorithm>

#include "kernels/cpu/isa.h"

namespace convoy::cpu {

LayoutId block_layout() {
  return isa().block == 16 ? kBlock16 : kBlock8;
}

const char* name(LayoutId layout) {
  switch (layout) {
    case kPlain:
      return "plain";
    case kBlock8:
      return "nChw8c";
    case kBlock16:
      return "nChw16c";
  }
  return layout >= kFirstWeightLayout ? "a weight layout" : "unknown";
}

Runs::Runs(LayoutId layout, std::int64_t n, std::int64_t all_channels, std::int64_t spatial)
    : period(block_of(layout)),
      blocks((all_channels + period - 1) / period),
      count(n * blocks),
      length(spatial * period),
      channels(all_channels) {}

std::int64_t Runs::used(std::int64_t i) const {
  return std::min<std::int64_t>(period, channels - i % blocks * period);
}

ActivationShape::ActivationShape(const Shape& shape) {
  if (shape.rank() > 0) n = shape[0];
  if (shape.rank() > 1) c = shape[1];
  for (int i = 2; i < shape.rank(); ++i) spatial *= shape[i];
}

std::int64_t stored_floats(LayoutId layout, const Shape& shape) {
  const ActivationShape a(shape);
  return Runs(layout, a.n, a.c, a.spatial).floats();
}

}  // namespace convoy::cpu
