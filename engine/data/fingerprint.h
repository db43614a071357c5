// What tells one data set from another: a hash over texts, numbers and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/io/hash.h"

namespace convoy {

/// XXH3-128 that grows with what is added. Texts carry their length: ("ab", "c") is not ("a",
/// "bc").
class Fingerprint {
 public:
  void add_text(std::string_view text);
  void add_number(std::int64_t number);
  void add_bytes(std::span<const std::uint8_t> bytes);
  /// 32 hex digits.
  std::string hex() const { return hash_.hex(); }

 private:
  Hash128 hash_;
};

}  // namespace convoy
