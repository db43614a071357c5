// Convolutions on a GPU in channels-last layouts, as they come and go in plain doubles. Outputs are
// NaN before; what lies around them, and the inputs, must be the same afterwards.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "kernels/base/context.h"
#include "kernels/cuda/layout.h"
#include "kernels/kernel_list.h"
#include "tests/kernels/cuda/gpu_name.h"

namespace convoy::testing {

/// Operands of a convolution in plain order.
struct ConvOperands {
  Conv2dShape shape;
  std::vector<double> x, w, b, dy;
};

/// Results of its three passes; y with bias. dx is empty where it was not asked for.
struct ConvResults {
  std::vector<double> y, dx, dw;
};

/// Integers so small that every sum is exact in f32: -1, 0, 1.
ConvOperands integer_operands(const Conv2dShape& shape);
/// Values in [-1, 1) that bf16 holds.
ConvOperands bf16_operands(const Conv2dShape& shape);

/// By the reference backend in f64.
ConvResults reference_results(const ConvOperands& operands, bool input_gradient = true);

/// Tensors on the emulated device 0, with guarded memory.
class GpuRun {
 public:
  GpuRun() : context_(context(kGpuName)) {}
  ~GpuRun();

  Stream& stream() const { return context_.default_stream(); }
  /// A tensor (rank 4) of these values, padded as `layout` says.
  Buffer put(const Shape& shape, const std::vector<double>& values, DType dtype, LayoutId layout);
  /// A tensor full of NaN.
  Buffer make(const Shape& shape, DType dtype, LayoutId layout);
  /// The values of a tensor; checks that padding is zero, and the memory around it untouched.
  std::vector<double> values(const Shape& shape, ConstBuffer buffer);
  /// Bits of all stored elements.
  std::vector<std::byte> bits(ConstBuffer buffer);
  /// Checks that all that was put() is as it was, and returns whether it is.
  bool inputs_are_unchanged();

 private:
  struct Memory {
    MemoryPool::Block block;
    Buffer buffer;
    std::size_t bytes;
    std::vector<std::byte> input;
  };
  Memory& allocate(std::size_t bytes, DType dtype, LayoutId layout);
  const Memory& find(ConstBuffer buffer) const;
  std::vector<std::byte> read(const void* from, std::size_t bytes);

  DeviceContext& context_;
  std::deque<Memory> memory_;
};

/// The layout of x and w for `shape` in `dtype`: channels fill up 16 bytes, or are 4.
LayoutId channels_layout(const Conv2dShape& shape);

}  // namespace convoy::testing
