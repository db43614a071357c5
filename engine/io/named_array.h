// A named array in host memory: what files of weights hold. Row-major, little-endian, no strides.
// Files may hold more dimensions than a Shape does, so the extents are a vector; a scalar has none.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/dtype.h"

namespace convoy {

static_assert(std::endian::native == std::endian::little,
              "files hold little-endian values and are read and written as they lie in memory");

/// One array; `bytes` holds product(shape) elements of `dtype`.
struct NamedArray {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  friend bool operator==(const NamedArray&, const NamedArray&) = default;
};

/// `internal` unless name, shape and size of `array` fit together.
void check_consistent(const NamedArray& array);

}  // namespace convoy
