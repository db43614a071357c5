#include "engine/io/text.h"

#include "tests/support/catch.h"

using namespace convoy;

TEST_CASE("text: valid UTF-8 is told from everything else", "[io][text]") {
  CHECK(is_utf8(""));
  CHECK(is_utf8("plain"));
  CHECK(is_utf8("\xC3\xBC \xE2\x82\xAC \xF0\x9F\x98\x80 \xF4\x8F\xBF\xBF"));
  CHECK_FALSE(is_utf8("\x80"));              // a tail without a head
  CHECK_FALSE(is_utf8("\xC3"));              // cut
  CHECK_FALSE(is_utf8("\xC3("));             // no tail
  CHECK_FALSE(is_utf8("\xC0\xAF"));          // overlong, 2 bytes
  CHECK_FALSE(is_utf8("\xE0\x80\xAF"));      // overlong, 3 bytes
  CHECK_FALSE(is_utf8("\xF0\x80\x80\xAF"));  // overlong, 4 bytes
  CHECK_FALSE(is_utf8("\xED\xA0\x80"));      // surrogate
  CHECK_FALSE(is_utf8("\xF4\x90\x80\x80"));  // over 10FFFF
  CHECK_FALSE(is_utf8("\xF5\x80\x80\x80"));  // no such head
}

TEST_CASE("text: any bytes go to UTF-8 and back", "[io][text]") {
  CHECK(utf8_of_bytes("a\xFFz") == "a\\xFFz");
  CHECK(utf8_of_bytes("back\\slash") == "back\\slash");
  CHECK(utf8_of_bytes("\\x41") == "\\x5Cx41");
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  for (const std::string& bytes :
       {all, std::string("\\x41"), std::string("\\x5Cx41"), std::string("\\x4"), std::string("\\"),
        std::string("\xC3\xBC\xC3"), std::string("\\\\xFF\xFF")}) {
    const std::string text = utf8_of_bytes(bytes);
    CHECK(is_utf8(text));
    CHECK(bytes_of_utf8(text) == bytes);
  }
}

TEST_CASE("text: error lines stay one line, excerpts a short one", "[io][text]") {
  CHECK(printable("caf\xC3\xA9") == "caf\xC3\xA9");
  CHECK(printable("a\nb\x7F\xFF") == "a\\x0Ab\\x7F\\xFF");
  CHECK(printable("\xC0\xAF\xED\xA0\x80") == "\\xC0\\xAF\\xED\\xA0\\x80");
  const std::string longer(100000, 'x');
  CHECK(printable(longer) == longer);
  CHECK(excerpt("a\nb") == "a\\x0Ab");
  const std::string text = excerpt(longer);
  CHECK(text.size() < 300);
  CHECK(text.ends_with("..."));
}

TEST_CASE("text: JSON strings", "[io][text]") {
  CHECK(json_string("") == R"("")");
  CHECK(json_string("a\"b\\c\n\t\x01\x7F\xC3\xBC") ==
        "\"a\\\"b\\\\c\\n\\t\\u0001\\u007f\xC3\xBC\"");
}
