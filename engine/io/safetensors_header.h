// The header of a safetensors file: JSON that names each tensor with type, shape and byte range.
// Headers come from strangers, so the reader takes exactly what the format allows, within limits.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/io/convert.h"

namespace convoy {

/// Limits on what is read; a file beyond them is refused before memory is spent on it.
struct SafetensorsLimits {
  static constexpr std::uint64_t kHeaderBytes = 100'000'000;
  static constexpr std::size_t kEntries = 65'536;
  static constexpr std::size_t kRank = 64;
  /// Names and metadata together.
  static constexpr std::size_t kTextBytes = 32u << 20;
};

/// One tensor as the header describes it; the range counts from the end of the header.
struct SafetensorsEntry {
  std::string name;
  const FileType* type = nullptr;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// All entries, in the order of their bytes in the file.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
};

/// Reads the JSON `text` of a file `path` whose tensors fill `payload` bytes. `checkpoint`, with
/// the tensor named, unless every range has the size of its shape and all ranges cover the payload
/// without hole or overlap.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t payload,
                                           const std::string& path);

/// The header as bytes, length in front, padded with spaces to a multiple of 8.
std::string safetensors_header_bytes(const SafetensorsHeader& header);

}  // namespace convoy
