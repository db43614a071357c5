// Reading whole files into memory, with errors that name the file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy {

using Bytes = std::vector<std::uint8_t>;

/// All bytes of a regular file; `data` if it cannot be read or holds more than `most` bytes.
Bytes read_file(const std::string& path, std::int64_t most = INT64_MAX);

/// The first `count` bytes of a regular file (fewer if it is shorter).
Bytes read_start(const std::string& path, std::int64_t count);

}  // namespace convoy
