// Buffers on cpu:0 for tests of the cpu backend, filled and read in plain layout.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "kernels/base/context.h"
#include "kernels/kernel_list.h"

namespace convoy::testing {

/// One run of kernels on cpu:0; its buffers live as long as it does.
class CpuRun {
 public:
  CpuRun() : context_(context("cpu:0")) {}
  ~CpuRun() { wait(); }

  const KernelTable& kernels() const { return context_.kernels(); }
  DeviceContext& device() const { return context_; }
  Stream& stream() const { return context_.default_stream(); }

  /// Memory of `shape` in `layout`, every byte set.
  Buffer make(const Shape& shape, LayoutId layout = kPlain, DType dtype = DType::f32);
  /// A tensor with these values in `layout`.
  Buffer put(const Shape& shape, const std::vector<float>& values, LayoutId layout = kPlain);
  Buffer doubles(const std::vector<double>& values);
  /// The values of `buffer`, whatever its layout.
  std::vector<float> values(const Shape& shape, ConstBuffer buffer);
  /// The memory of `buffer` as it is.
  template <class T>
  std::vector<T> memory(ConstBuffer buffer, std::size_t count) {
    std::vector<T> result(count);
    context_.copy_out(stream(), result.data(), buffer.data, count * sizeof(T));
    return result;
  }

 private:
  void wait() noexcept {
    try {
      stream().synchronize();
    } catch (...) {  // a test that looks for the error has seen it already
    }
  }

  DeviceContext& context_;
  std::deque<MemoryPool::Block> blocks_;
};

/// Small whole numbers: sums of their products are exact in float, in any order.
std::vector<float> integers(std::int64_t count, int seed);

/// Numbers between -1 and 1, the same for the same seed.
std::vector<float> fractions(std::int64_t count, int seed);

}  // namespace convoy::testing
