#include "engine/io/json_reader.h"

#include "engine/io/text.h"
#include "kernels/base/error.h"

namespace convoy {

namespace {

void append_utf8(std::string& out, std::uint32_t code) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    tail(12), tail(6), tail(0);
  }
}

}  // namespace

void JsonReader::fail(const std::string& what) const {
  CONVOY_FAIL(checkpoint, "{}: header byte {}: {}", printable(path_), at_, what);
}

void JsonReader::skip_space() {
  while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != text_.npos) ++at_;
}

void JsonReader::expect(char c) {
  if (accept(c)) return;
  const std::string found =
      at_ < text_.size() ? fmt::format("'{}'", excerpt(text_.substr(at_, 1))) : "the end";
  fail(fmt::format("expected '{}', found {}", c, found));
}

bool JsonReader::accept(char c) {
  skip_space();
  if (at_ >= text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

std::string JsonReader::string() {
  expect('"');
  std::string result;
  while (true) {
    if (at_ >= text_.size()) fail("a string without end");
    const auto byte = static_cast<unsigned char>(text_[at_]);
    if (byte == '"') break;
    if (byte < 0x20) fail("a control character in a string");
    if (byte == '\\') {
      escape(result);
      continue;
    }
    const std::size_t length = utf8_length(text_, at_);
    if (length == 0) fail("not UTF-8");
    result += text_.substr(at_, length);
    at_ += length;
  }
  ++at_;
  return result;
}

void JsonReader::escape(std::string& out) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  ++at_;
  if (peek() == 'u') return append_utf8(out, code_point());
  const std::size_t letter = kLetters.find(peek());
  if (letter == kLetters.npos || at_ >= text_.size()) fail("an unknown escape in a string");
  out += kMeanings[letter];
  ++at_;
}

std::uint32_t JsonReader::code_point() {
  const std::uint32_t first = hex4();
  if (first < 0xD800 || first > 0xDFFF) return first;
  if (first > 0xDBFF || text_.substr(at_, 2) != "\\u") fail("half a surrogate pair");
  ++at_;
  const std::uint32_t second = hex4();
  if (second < 0xDC00 || second > 0xDFFF) fail("half a surrogate pair");
  return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
}

std::uint32_t JsonReader::hex4() {
  ++at_;  // the u
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const char lower = static_cast<char>(peek() | 0x20);
    const bool letter = lower >= 'a' && lower <= 'f';
    if (!letter && !(peek() >= '0' && peek() <= '9')) fail("\\u without four hex digits");
    value = value * 16 + static_cast<std::uint32_t>(letter ? lower - 'a' + 10 : peek() - '0');
  }
  return value;
}

std::int64_t JsonReader::number() {
  skip_space();
  const std::size_t start = at_;
  std::int64_t value = 0;
  for (; peek() >= '0' && peek() <= '9'; ++at_) {
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, peek() - '0', &value)) {
      fail("overflow: a number over 2^63 - 1");
    }
  }
  const std::size_t digits = at_ - start;
  const bool more = peek() == '.' || peek() == 'e' || peek() == 'E';
  if (digits == 0 || more || (digits > 1 && text_[start] == '0')) {
    fail("expected a whole number >= 0");
  }
  return value;
}

void JsonReader::expect_end() {
  while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  if (at_ < text_.size()) fail("expected only spaces after the last brace");
}

}  // namespace convoy
