// CUDA's small structs that both sides of a launch know.
#pragma once

namespace convoy::emulator {

struct uint3 {
  unsigned x = 0, y = 0, z = 0;
  friend bool operator==(const uint3&, const uint3&) = default;
};

/// Extents of a grid or block; those left out are 1.
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr unsigned long long count() const { return 1ull * x * y * z; }
  friend bool operator==(const dim3&, const dim3&) = default;
};

struct EmulatedStream;
using cudaStream_t = EmulatedStream*;

}  // namespace convoy::emulator
