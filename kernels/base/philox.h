// Random bits by counter: Philox 4x32-10 (Salmon et al., SC 2011). A block depends on its counter
// and key alone, so any thread may draw any block at any time.
#pragma once

#include <array>
#include <cstdint>

namespace convoy {

using PhiloxBlock = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// The four random words of `counter` under `key`.
PhiloxBlock philox(const PhiloxBlock& counter, const PhiloxKey& key);

inline std::uint32_t low_half(std::uint64_t v) {
  return static_cast<std::uint32_t>(v);
}
inline std::uint32_t high_half(std::uint64_t v) {
  return static_cast<std::uint32_t>(v >> 32);
}

/// Random bits as a number uniform in [0, 1), by the upper 53 of them.
inline double unit_of(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace convoy
