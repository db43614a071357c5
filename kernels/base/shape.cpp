#include "kernels/base/shape.h"

#include "kernels/base/error.h"

namespace convoy {

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::vector<std::int64_t>(extents)) {}

Shape::Shape(const std::vector<std::int64_t>& extents) {
  CONVOY_CHECK(extents.size() <= kMaxRank, "shape: {} extents, at most {} are supported",
               extents.size(), kMaxRank);
  for (std::int64_t extent : extents) {
    CONVOY_CHECK(extent >= 0, "shape: extent {} is negative", extent);
    extents_[rank_++] = extent;
  }
}

std::int64_t Shape::count() const {
  std::int64_t product = 1;
  for (int i = 0; i < rank_; ++i) {
    CONVOY_CHECK(!__builtin_mul_overflow(product, extents_[i], &product),
                 "shape: {} holds more than 2^63 elements", to_string(*this));
  }
  return product;
}

Shape Shape::with(int i, std::int64_t extent) const {
  Shape result = *this;
  result.extents_[i < 0 ? rank_ + i : i] = extent;
  return result;
}

std::vector<std::int64_t> Shape::extents() const {
  return {extents_.begin(), extents_.begin() + rank_};
}

std::string to_string(const Shape& shape) {
  return shape_text(shape.extents());
}

std::string shape_text(std::span<const std::int64_t> extents) {
  std::string text;
  for (std::int64_t extent : extents) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "(" + text + ")";
}

std::size_t bytes_of(const Shape& shape, DType dtype) {
  std::int64_t bytes = 0;
  const bool overflow =
      __builtin_mul_overflow(shape.count(), static_cast<std::int64_t>(size_of(dtype)), &bytes);
  if (overflow) {
    CONVOY_FAIL(resource, "shape: {} of {} needs more than 2^63 bytes", to_string(shape),
                name(dtype));
  }
  return static_cast<std::size_t>(bytes);
}

}  // namespace convoy
