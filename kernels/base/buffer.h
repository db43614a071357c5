// Raw memory as kernels see it: a pointer, an element type, and how the elements lie.
#pragma once

#include <cstdint>

#include "kernels/base/dtype.h"

namespace convoy {

/// How the elements of a tensor lie in its memory. Only the backend that gave out the number knows
/// what it means, save for kPlain: row-major, outermost extent first, nothing between the elements.
using LayoutId = std::int32_t;
inline constexpr LayoutId kPlain = 0;

/// Memory that a kernel reads. A null pointer is an operand left out.
struct ConstBuffer {
  const void* data = nullptr;
  DType dtype = DType::f32;
  LayoutId layout = kPlain;

  template <class T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
  explicit operator bool() const { return data != nullptr; }
};

/// Memory that a kernel writes.
struct Buffer {
  void* data = nullptr;
  DType dtype = DType::f32;
  LayoutId layout = kPlain;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  explicit operator bool() const { return data != nullptr; }
  operator ConstBuffer() const { return {data, dtype, layout}; }
};

}  // namespace convoy
