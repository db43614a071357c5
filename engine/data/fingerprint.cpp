#include "engine/data/fingerprint.h"

#include <array>

namespace convoy {

void Fingerprint::add_text(std::string_view text) {
  add_number(static_cast<std::int64_t>(text.size()));
  hash_.add(bytes_of(text));
}

void Fingerprint::add_number(std::int64_t number) {
  std::array<std::uint8_t, 8> bytes;  // little-endian on every machine
  for (unsigned i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(number) >> (8 * i));
  }
  add_bytes(bytes);
}

void Fingerprint::add_bytes(std::span<const std::uint8_t> bytes) {
  hash_.add(std::as_bytes(bytes));
}

}  // namespace convoy
