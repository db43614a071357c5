// Extents of a tensor, outermost first: (N, C, H, W), (K, C, R, S), (rows, columns), ...
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/dtype.h"

namespace convoy {

/// At most four extents, each >= 0. A shape of rank 0 is a scalar with one element.
class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(const std::vector<std::int64_t>& extents);

  int rank() const { return rank_; }
  /// Extent of dimension `i`; negative `i` counts from the end.
  std::int64_t operator[](int i) const { return extents_[i < 0 ? rank_ + i : i]; }
  /// Product of the extents; `usage` if it does not fit into 63 bits.
  std::int64_t count() const;
  /// The same shape with extent `i` replaced.
  Shape with(int i, std::int64_t extent) const;
  std::vector<std::int64_t> extents() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

/// "(8, 3, 32, 32)"; "()" for a scalar. Extents need be no Shape: files hold more of them.
std::string to_string(const Shape& shape);
std::string shape_text(std::span<const std::int64_t> extents);

/// Bytes of `shape` row-major elements; `resource` if they do not fit into 63 bits.
std::size_t bytes_of(const Shape& shape, DType dtype);

}  // namespace convoy
