// Operands in another layout or type than a kernel works in: copies in the stream's scratch memory.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "kernels/base/buffer.h"
#include "kernels/base/host_stream.h"
#include "kernels/base/shape.h"
#include "kernels/cpu/layout.h"

namespace convoy::cpu {

/// Queues the copy of activations, both f32 or both bf16, between plain and blocked layouts.
void submit_reorder(Stream& stream, const Shape& shape, ConstBuffer x, Buffer y);

/// Takes the scratch memory of one kernel call and queues the reorders around it: input() before
/// the kernel's own work, finish() after it.
class Staging {
 public:
  struct Item {
    Shape shape;
    ConstBuffer buffer;
  };

  /// As a working layout: each operand stays in its own.
  static constexpr LayoutId kAsItLies = -1;

  /// `working` is the kernel's layout, `type` (f32 or bf16) what it reads and writes, `items` all
  /// its operands of values, `own_bytes` what the kernel needs besides.
  Staging(Stream& stream, LayoutId working, std::initializer_list<Item> items,
          std::size_t own_bytes = 0, DType type = DType::f32);

  /// The values of `buffer` in the working layout and type, whose name in C++ is T; null if it is
  /// left out.
  template <class T = float>
  const T* input(const Shape& shape, ConstBuffer buffer) {
    return input_buffer(shape, buffer).template as<T>();
  }
  /// Where the kernel writes `buffer` in the working layout and type; null if it is left out.
  template <class T = float>
  T* output(const Shape& shape, Buffer buffer) {
    return output_buffer(shape, buffer).template as<T>();
  }
  ConstBuffer input_buffer(const Shape& shape, ConstBuffer buffer);
  Buffer output_buffer(const Shape& shape, Buffer buffer);
  /// Memory of one or the other, as `written` says.
  void* operand(const Shape& shape, ConstBuffer buffer, bool written) {
    if (!written) return const_cast<void*>(input_buffer(shape, buffer).data);
    return output_buffer(shape, {const_cast<void*>(buffer.data), buffer.dtype, buffer.layout}).data;
  }
  /// The kernel's own scratch memory.
  void* own() const { return own_; }
  /// Queues the copies to outputs in other layouts and types.
  void finish();

 private:
  struct Copy {
    Shape shape;
    ConstBuffer from;
    Buffer to, between;
  };
  /// What `buffer` becomes on its way: in between in the working layout, at last in its type too.
  struct Way {
    LayoutId layout;
    bool moves, changes;
  };
  Way way_of(ConstBuffer buffer) const;
  std::size_t bytes_for(const Item& item) const;
  Buffer take(const Shape& shape, LayoutId layout, DType type);

  Stream& stream_;
  const LayoutId working_;
  const DType type_;
  std::byte* own_ = nullptr;
  std::byte* next_ = nullptr;
  std::vector<Copy> copies_;
};

}  // namespace convoy::cpu
