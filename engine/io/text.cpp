#include "engine/io/text.h"

#include <fmt/core.h>

#include <cctype>
#include <cstdint>

namespace convoy {

namespace {

constexpr std::size_t kExcerptLength = 200;

std::string escaped(char c) {
  return fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// Whether `text` at `at` reads like `\xNN`.
bool is_escape(std::string_view text, std::size_t at) {
  return at + 4 <= text.size() && text[at] == '\\' && text[at + 1] == 'x' &&
         hex_value(text[at + 2]) >= 0 && hex_value(text[at + 3]) >= 0;
}

std::size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const std::size_t length = sequence_length(byte(0));
  if (length <= 1) return length;
  if (at + length > text.size()) return 0;
  std::uint32_t code = byte(0) & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return code < kSmallest[length] || code > 0x10FFFF || surrogate ? 0 : length;
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string utf8_of_bytes(std::string_view bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = utf8_length(bytes, at);
    // A name that itself reads like an escape gets its backslash escaped, so that the way back is
    // unique.
    if (length == 0 || is_escape(bytes, at)) {
      text += escaped(bytes[at++]);
    } else {
      text += bytes.substr(at, length);
      at += length;
    }
  }
  return text;
}

std::string bytes_of_utf8(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    if (is_escape(text, at)) {
      bytes += static_cast<char>(hex_value(text[at + 2]) * 16 + hex_value(text[at + 3]));
      at += 4;
    } else {
      bytes += text[at++];
    }
  }
  return bytes;
}

namespace {

/// Printable text of at most about `most` bytes.
std::string printable_start(std::string_view text, std::size_t most) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    if (result.size() > most) return result + "...";
    const std::size_t length = utf8_length(text, at);
    const auto lead = static_cast<unsigned char>(text[at]);
    if (length == 0 || lead < 0x20 || lead == 0x7F) {
      result += escaped(text[at++]);
    } else {
      result += text.substr(at, length);
      at += length;
    }
  }
  return result;
}

void append_json(std::string& text, char c) {
  const auto code = static_cast<unsigned char>(c);
  if (c == '\n') {
    text += "\\n";
  } else if (c == '\t') {
    text += "\\t";
  } else if (code < 0x20 || code == 0x7F) {
    text += fmt::format("\\u{:04x}", code);
  } else {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
}

}  // namespace

std::string printable(std::string_view text) {
  return printable_start(text, SIZE_MAX);
}

std::string excerpt(std::string_view text) {
  return printable_start(text, kExcerptLength);
}

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (char c : text) append_json(result, c);
  return result + '"';
}

}  // namespace convoy
