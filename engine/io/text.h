// Names are bytes of any encoding; JSON and error lines want UTF-8 without surprises. These helpers
// go from one to the other. A byte that cannot stand as it is becomes `\xNN`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace convoy {

/// Length of the valid UTF-8 sequence at `text[at]` (1 to 4), 0 where there is none.
std::size_t utf8_length(std::string_view text, std::size_t at);

/// Whether all of `text` is valid UTF-8 (no overlong forms, no surrogates).
bool is_utf8(std::string_view text);

/// UTF-8 text for any bytes; `bytes_of_utf8` gives the bytes back.
std::string utf8_of_bytes(std::string_view bytes);

/// The inverse of `utf8_of_bytes`.
std::string bytes_of_utf8(std::string_view text);

/// For error lines: the whole of a path or name, with control characters and bytes outside UTF-8 as
/// `\xNN`.
std::string printable(std::string_view text);

/// The same of what a damaged file may hold at any length: long texts shortened.
std::string excerpt(std::string_view text);

/// A JSON string, quotes included, of UTF-8 `text`.
std::string json_string(std::string_view text);

}  // namespace convoy
