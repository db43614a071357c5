#include "engine/data/printable_path.h"

#include <fmt/core.h>

#include "engine/io/text.h"

namespace convoy {

std::string printable_path(std::string_view path) {
  std::string text;
  for (std::size_t at = 0; at < path.size();) {
    std::size_t length = utf8_length(path, at);
    auto lead = static_cast<unsigned char>(path[at]);
    bool as_it_is = length > 0 && lead >= 0x20 && lead != 0x7F;
    text += as_it_is ? std::string(path.substr(at, length)) : fmt::format("\\x{:02X}", lead);
    at += as_it_is ? length : 1;
  }
  return text;
}

}  // namespace convoy
