// Values in the memory of an emulated GPU, at any alignment, between guards.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "kernels/base/bf16.h"
#include "kernels/base/context.h"
#include "kernels/kernel_list.h"
#include "tests/kernels/cuda/gpu_name.h"
#include "tests/support/catch.h"

namespace convoy {

/// Equal bits: for comparing vectors of them.
inline bool operator==(Bf16 a, Bf16 b) {
  return a.bits == b.bits;
}

}  // namespace convoy

namespace convoy::testing {

inline DeviceContext& gpu() {
  return context(kGpuName);
}
inline const KernelTable& gpu_kernels() {
  return gpu().kernels();
}
inline Stream& gpu_stream() {
  return gpu().default_stream();
}

/// `value` as T: bf16 by way of float.
template <class T>
T as(double value) {
  if constexpr (std::is_same_v<T, Bf16>) {
    return Bf16(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
double number(T value) {
  if constexpr (std::is_same_v<T, Bf16>) {
    return static_cast<float>(value);
  } else {
    return static_cast<double>(value);
  }
}

/// 1, 2, ..., `limit`, 1, ... as T.
template <class T>
std::vector<T> counting(std::int64_t count, int limit = 100) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(as<T>(double(i % limit + 1)));
  return values;
}

/// `count` values whose first lies `offset` elements behind an address that is aligned to 256
/// bytes. At first all bits are set, which is NaN.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::int64_t count, int offset = 0)
      : count_(count),
        first_(kGuard + offset),
        block_(gpu().memory().allocate((first_ + count + kGuard) * sizeof(T), &gpu_stream())) {
    write(std::vector<unsigned char>((first_ + count_ + kGuard) * sizeof(T), 0xff).data(), 0,
          first_ + count_ + kGuard);
  }
  explicit DeviceArray(const std::vector<T>& values, int offset = 0)
      : DeviceArray(std::ssize(values), offset) {
    write(values.data(), first_, count_);
  }

  Buffer buffer(LayoutId layout = kPlain) const {
    return {static_cast<T*>(block_.data()) + first_, dtype_of<T>, layout};
  }
  /// After the stream's work. Checks that the guards have their bits.
  std::vector<T> values() const {
    std::vector<T> all(first_ + count_ + kGuard);
    gpu().copy_out(gpu_stream(), all.data(), block_.data(), all.size() * sizeof(T));
    CHECK(is_untouched(std::span(all).first(first_)));
    CHECK(is_untouched(std::span(all).last(kGuard)));
    return {all.begin() + first_, all.begin() + first_ + count_};
  }

 private:
  static constexpr std::int64_t kGuard = 256;
  static bool is_untouched(std::span<const T> guard) {
    const auto bytes = std::as_bytes(guard);
    return std::all_of(bytes.begin(), bytes.end(),
                       [](std::byte b) { return b == std::byte{0xff}; });
  }
  void write(const void* from, std::int64_t at, std::int64_t count) {
    gpu().copy_in(gpu_stream(), static_cast<T*>(block_.data()) + at, from, count * sizeof(T));
  }

  std::int64_t count_;
  std::int64_t first_;
  MemoryPool::Block block_;
};

}  // namespace convoy::testing
