#include "engine/io/json_reader.h"

#include "tests/support/expect_error.h"

using namespace convoy;
using convoy::testing::expect_error;

namespace {

std::string read_string(std::string_view text) {
  JsonReader reader(text, "f");
  std::string result = reader.string();
  reader.expect_end();
  return result;
}

std::int64_t read_number(std::string_view text) {
  JsonReader reader(text, "f");
  const std::int64_t result = reader.number();
  reader.expect_end();
  return result;
}

}  // namespace

TEST_CASE("json reader: strings with every escape", "[io][json]") {
  CHECK(read_string(R"("")").empty());
  CHECK(read_string(R"("a\"\\\/\b\f\n\r\tz")") == "a\"\\/\b\f\n\r\tz");
  CHECK(read_string(R"("\u0041\u00fc\u20AC")") == "A\xC3\xBC\xE2\x82\xAC");
  CHECK(read_string(R"("\uD83D\uDE00")") == "\xF0\x9F\x98\x80");
  CHECK(read_string(R"("\u0000")") == std::string(1, '\0'));
}

TEST_CASE("json reader: bad strings are refused", "[io][json]") {
  const auto bad = [](std::string_view text, std::string_view part) {
    INFO(text);
    expect_error(ErrorKind::checkpoint, {"f: header byte", part}, [&] { read_string(text); });
  };
  bad("\"open", "without end");
  bad("\"open\\", "unknown escape");
  bad("\"line\n\"", "control character");
  bad("\"\xFF\"", "not UTF-8");
  bad(R"("\x41")", "unknown escape");
  bad(R"("\u00g0")", "four hex digits");
  bad(R"("\u00)", "four hex digits");
  bad(R"("\uD83D")", "surrogate");
  bad(R"("\uDE00\uD83D")", "surrogate");
  bad(R"("\uD83D\u0041")", "surrogate");
  bad("7", "expected '\"', found '7'");
  bad("", "found the end");
  bad("\"a\" b", "only spaces");
  bad("\"a\"\n", "only spaces");
  bad(std::string_view("\"a\"\0", 4), "only spaces");
}

TEST_CASE("json reader: whole numbers only, up to 2^63 - 1", "[io][json]") {
  CHECK(read_number("0") == 0);
  CHECK(read_number(" 9223372036854775807  ") == 9223372036854775807);
  const auto bad = [](std::string_view text, std::string_view part) {
    INFO(text);
    expect_error(ErrorKind::checkpoint, {part}, [&] { read_number(text); });
  };
  bad("9223372036854775808", "overflow");
  bad("99999999999999999999999", "overflow");
  for (std::string_view text : {"-1", "01", "1.0", "1e3", "1E3", "", "x", "+1", "true", "[1]"}) {
    bad(text, "whole number");
  }
}
