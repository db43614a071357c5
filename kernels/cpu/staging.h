// Operands in another layout than the one a kernel works in: copies in the stream's scratch memory.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "kernels/base/buffer.h"
#include "kernels/base/host_stream.h"
#include "kernels/base/shape.h"
#include "kernels/cpu/layout.h"

namespace convoy::cpu {

/// Queues the copy of f32 activations between plain and blocked layouts.
void submit_reorder(Stream& stream, const Shape& shape, const float* x, LayoutId from, float* y,
                    LayoutId to);

/// Takes the scratch memory of one kernel call and queues the reorders around it: input() before
/// the kernel's own work, finish() after it.
class Staging {
 public:
  struct Item {
    Shape shape;
    ConstBuffer buffer;
  };

  /// `working` is the kernel's layout, `items` all its activations, `own_bytes` what the kernel
  /// needs besides.
  Staging(Stream& stream, LayoutId working, std::initializer_list<Item> items,
          std::size_t own_bytes = 0);

  /// The values of `buffer` in the working layout; null if it is left out.
  const float* input(const Shape& shape, ConstBuffer buffer);
  /// Where the kernel writes `buffer` in the working layout; null if it is left out.
  float* output(const Shape& shape, Buffer buffer);
  /// The kernel's own scratch memory.
  void* own() const { return own_; }
  /// Queues the copies to outputs in other layouts.
  void finish();

 private:
  struct Copy {
    Shape shape;
    const float* from;
    Buffer to;
  };
  float* take(const Shape& shape);

  Stream& stream_;
  const LayoutId working_;
  std::byte* own_ = nullptr;
  std::byte* next_ = nullptr;
  std::vector<Copy> copies_;
};

}  // namespace convoy::cpu
