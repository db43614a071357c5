// XXH3 checksums of bytes, and the hash that names the state of a network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/io/named_array.h"

struct XXH3_state_s;

namespace convoy {

/// XXH3-128 of a stream of bytes.
class Hash128 {
 public:
  Hash128();
  ~Hash128();
  Hash128(Hash128&&) noexcept;
  Hash128& operator=(Hash128&&) noexcept;

  void add(std::span<const std::byte> bytes);
  /// The hash of all bytes so far: 32 hex digits, most significant first, as `xxhsum -H2` prints
  /// it.
  std::string hex() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

/// The bytes of a text.
inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// XXH3-64 of `bytes`.
std::uint64_t hash64(std::span<const std::byte> bytes);

/// XXH3-128 of `bytes` as 32 hex digits.
std::string hash128_hex(std::span<const std::byte> bytes);

/// The hash that `end.weights_hash` shows: equal hashes mean bitwise equal networks, whatever the
/// layout was. It is XXH3-128 over the floating entries (parameters and running statistics;
/// counters such as num_batches_tracked are left out) sorted by the bytes of their names; each
/// gives its name, one zero byte, and its values row-major as little-endian float32.
std::string weights_hash(std::span<const NamedArray> entries);

}  // namespace convoy
