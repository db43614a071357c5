// Small data sets on disk and fixtures, for the tests of loaders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/image_files.h"
#include "tests/support/temporary_folder.h"

namespace convoy::testing {

/// Writes a file below `folder`, making the folders on the way; its path.
inline std::string put_file(const TemporaryFolder& folder, const std::string& name,
                            const Bytes& bytes) {
  std::string path = folder / name;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return path;
}

/// A PNG of one colour below `folder`.
inline std::string put_png(const TemporaryFolder& folder, const std::string& name, int side = 8,
                           int value = 100) {
  return put_file(folder, name,
                  testing::make_png(testing::plain_image(side, side, value, value, value)));
}

inline void put_number(Bytes& out, std::uint32_t v) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(v >> shift));
}

/// An idx file of the given header numbers and body.
inline Bytes idx_bytes(const std::vector<std::uint32_t>& header, const Bytes& body) {
  Bytes out;
  for (std::uint32_t v : header) put_number(out, v);
  out.insert(out.end(), body.begin(), body.end());
  return out;
}

/// `count` bytes: first, first + 1, ...
inline Bytes counted(std::size_t count, int first = 0) {
  Bytes out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>(first + i);
  return out;
}

/// A fixture's lines, split at spaces, without comments.
inline std::vector<std::vector<std::string>> fixture_lines(const std::string& name) {
  std::ifstream in(std::string(CONVOY_FIXTURES) + "/" + name);
  if (!in) throw std::runtime_error("no fixture " + name);
  std::vector<std::vector<std::string>> lines;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    lines.emplace_back();
    for (std::string word; words >> word;) lines.back().push_back(word);
  }
  return lines;
}

inline Bytes from_hex(const std::string& text) {
  Bytes out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    out.push_back(static_cast<std::uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return out;
}

/// Whether any of `lines` holds `part`.
inline bool any_holds(const std::vector<std::string>& lines, const std::string& part) {
  for (const std::string& line : lines) {
    if (line.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace convoy::testing
