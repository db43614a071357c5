// Other shapes of the same memory: reshape, flatten, batch slices.
#include "engine/autograd/node.h"
#include "engine/ops/ops.h"
#include "engine/ops/support.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

// The -1 of `extents` filled in.
Shape resolved(const Tensor& x, std::vector<std::int64_t> extents) {
  std::int64_t known = 1;
  std::int64_t* open = nullptr;
  for (std::int64_t& extent : extents) {
    CONVOY_CHECK(extent >= 0 || (extent == -1 && !open), "reshape: extent {} of {} extents", extent,
                 extents.size());
    if (extent == -1) {
      open = &extent;
    } else {
      CONVOY_CHECK(!__builtin_mul_overflow(known, extent, &known),
                   "reshape: {} to {} extents of more than 2^63 elements", to_string(x.shape()),
                   extents.size());
    }
  }
  if (open && known > 0) *open = x.numel() / known;
  if (open && known == 0) *open = 0;
  const Shape shape(extents);
  CONVOY_CHECK(shape.count() == x.numel(), "reshape: {} has {} elements, {} has {}",
               to_string(x.shape()), x.numel(), to_string(shape), shape.count());
  return shape;
}

Tensor view(const Tensor& plain, const Shape& shape, std::size_t offset) {
  Tensor y = plain.detach();
  y.impl()->shape = shape;
  y.impl()->offset += offset;
  return y;
}

}  // namespace

Tensor Tensor::reshape(const std::vector<std::int64_t>& extents) const {
  const Shape target = resolved(*this, extents);
  if (target == shape()) return *this;
  Tensor y = view(detach().with_layout(kPlain), target, 0);
  auto half = [from = shape()](const Tensor& dy, const std::vector<bool>&) -> Gradients {
    return {view(dy, from, 0)};
  };
  return record("reshape", y, {*this}, half);
}

Tensor Tensor::flatten() const {
  CONVOY_CHECK(shape().rank() >= 1, "flatten: {} has no batch dimension", describe(*this));
  return reshape({size(0), shape().with(0, 1).count()});
}

Tensor Tensor::slice(std::int64_t begin, std::int64_t end) const {
  CONVOY_CHECK(shape().rank() >= 1, "slice: {} has no batch dimension", describe(*this));
  CONVOY_CHECK(0 <= begin && begin <= end && end <= size(0), "slice: {}..{} of {}", begin, end,
               describe(*this));
  const std::int64_t per_image = size(0) ? numel() / size(0) : 0;
  const std::size_t offset = static_cast<std::size_t>(begin * per_image) * size_of(dtype());
  Tensor y = view(detach().with_layout(kPlain), shape().with(0, end - begin), offset);
  auto half = [from = shape(), begin, end](const Tensor& dy,
                                           const std::vector<bool>&) -> Gradients {
    Tensor dx = Tensor::zeros(from, dy.options());
    dx.slice(begin, end).copy_(dy);
    return {dx};
  };
  return record("slice", y, {*this}, half);
}

std::vector<Tensor> Tensor::split(std::int64_t images) const {
  CONVOY_CHECK(images >= 1, "split: slices of {} images, expected at least 1", images);
  if (size(0) == 0) return {*this};
  std::vector<Tensor> parts;
  for (std::int64_t begin = 0; begin < size(0); begin += images) {
    parts.push_back(slice(begin, std::min(begin + images, size(0))));
  }
  return parts;
}

}  // namespace convoy
