// bfloat16: the upper half of a float. Rounds to nearest, ties to even; NaN stays NaN.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/base/dtype.h"
#include "kernels/base/host_device.h"

namespace convoy {

/// Two bytes, as devices store them. Arithmetic is done in float.
struct Bf16 {
  std::uint16_t bits;

  Bf16() = default;
  CONVOY_HOST_DEVICE explicit Bf16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const bool nan = (word & 0x7fffffffu) > 0x7f800000u;
    // A NaN whose payload lies in the lower half must not round to an infinity.
    bits = static_cast<std::uint16_t>(nan ? (word >> 16) | 0x40u
                                          : (word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }
  CONVOY_HOST_DEVICE explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};
static_assert(sizeof(Bf16) == 2);

template <>
struct DTypeOf<Bf16> {
  static constexpr DType value = DType::bf16;
};

}  // namespace convoy
