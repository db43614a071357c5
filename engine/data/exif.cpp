#include "engine/data/exif.h"

#include <cstddef>
#include <optional>

namespace convoy {
namespace {

constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::uint32_t kShortType = 3;
constexpr std::size_t kEntryBytes = 12;

/// Numbers of a TIFF structure in its byte order; absent beyond the end.
class TiffBytes {
 public:
  explicit TiffBytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {
    bool big = starts_with('M', 'M');
    bool little = starts_with('I', 'I');
    big_endian_ = big;
    valid_ = (big || little) && number(2, 2) == 42u;
  }

  bool valid() const { return valid_; }

  std::optional<std::uint32_t> number(std::size_t at, std::size_t length) const {
    if (at > bytes_.size() || length > bytes_.size() - at) return {};
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < length; ++i) {
      value = value << 8 | bytes_[at + (big_endian_ ? i : length - 1 - i)];
    }
    return value;
  }

 private:
  bool starts_with(std::uint8_t a, std::uint8_t b) const {
    return bytes_.size() >= 2 && bytes_[0] == a && bytes_[1] == b;
  }

  std::span<const std::uint8_t> bytes_;
  bool big_endian_ = false;
  bool valid_ = false;
};

std::optional<std::uint32_t> find_orientation(const TiffBytes& tiff) {
  std::optional<std::uint32_t> directory = tiff.number(4, 4);
  if (!directory) return {};
  std::optional<std::uint32_t> entries = tiff.number(*directory, 2);
  for (std::size_t i = 0; i < entries.value_or(0); ++i) {
    std::size_t at = *directory + 2 + i * kEntryBytes;
    std::optional<std::uint32_t> tag = tiff.number(at, 2);
    if (!tag) return {};
    if (*tag != kOrientationTag || tiff.number(at + 2, 2) != kShortType) continue;
    return tiff.number(at + 8, 2);
  }
  return {};
}

}  // namespace

int exif_orientation(std::span<const std::uint8_t> tiff) {
  TiffBytes bytes(tiff);
  if (!bytes.valid()) return 1;
  std::uint32_t value = find_orientation(bytes).value_or(1);
  return value >= 2 && value <= 8 ? static_cast<int>(value) : 1;
}

}  // namespace convoy
