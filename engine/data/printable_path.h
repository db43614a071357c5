// File names are bytes. In messages they appear whole, as UTF-8 text on one line.
#pragma once

#include <string>
#include <string_view>

namespace convoy {

/// `path` with each byte that is a control character or no part of valid UTF-8 written as \xNN.
std::string printable_path(std::string_view path);

}  // namespace convoy
