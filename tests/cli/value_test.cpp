#include "cli/value.h"

#include "tests/cli/cli_test.h"

using namespace convoy::cli;

namespace {
Value typed(const std::string& text) {
  return {text, "--x"};
}
}  // namespace

TEST_CASE("integers are read whole and in range") {
  CHECK(read_integer(typed("1"), {1}) == 1);
  CHECK(read_integer(typed("9223372036854775807"), {1}) == 9223372036854775807);
  CHECK(usage_error([] { read_integer(typed("0"), {1}); }) ==
        "--x: 0 is out of range, expected 1 or more");
  CHECK(usage_error([] {
          read_integer(typed("7"), {1, 6});
        }) == "--x: 7 is out of range, expected 1 to 6");
  CHECK(usage_error([] { read_integer(typed("9223372036854775808"), {1}); }) ==
        "--x: 9223372036854775808 is out of range, expected 1 or more");
  for (const char* bad : {"", "1.5", "1e3", "3x", " 3", "+3", "0x10"}) {
    CHECK(usage_error([&] { read_integer(typed(bad), {1}); }) ==
          "--x: \"" + std::string(bad) + "\" is not an integer, expected 1 or more");
  }
}

TEST_CASE("seeds use all 64 bits") {
  CHECK(read_unsigned(typed("18446744073709551615")) == 18446744073709551615u);
  CHECK(usage_error([] { read_unsigned(typed("-1")); }) ==
        "--x: \"-1\" is not an integer, expected 0 to 18446744073709551615");
}

TEST_CASE("bytes may have a unit") {
  CHECK(read_bytes(typed("8589934593")) == 8589934593);
  CHECK(read_bytes(typed("3KiB")) == 3072);
  CHECK(read_bytes(typed("8GiB")) == 8589934592);
  CHECK(usage_error([] { read_bytes(typed("9000000000GiB")); }) ==
        "--x: 9000000000 is out of range, expected 1 to 8589934591");
  CHECK(usage_error([] { read_bytes(typed("8G")); }).find("is not an integer") !=
        std::string::npos);
}

TEST_CASE("numbers are finite and in range") {
  CHECK(read_number(typed("1e-3"), {0}) == 0.001);
  CHECK(read_number(typed("0"), {0, 1, false, true}) == 0);
  CHECK(usage_error([] {
          read_number(typed("1"), {0, 1, false, true});
        }) == "--x: 1 is out of range, expected at least 0 and less than 1");
  CHECK(usage_error([] { read_number(typed("0"), {.low = 0, .open_low = true}); }) ==
        "--x: 0 is out of range, expected more than 0");
  CHECK(usage_error([] { read_number(typed("-0.1"), {0}); }) ==
        "--x: -0.1 is out of range, expected at least 0");
  CHECK(usage_error([] { read_number(typed("nan"), {0}); }) ==
        "--x: nan is out of range, expected at least 0");
  CHECK(usage_error([] { read_number(typed("inf"), {0}); }) ==
        "--x: inf is out of range, expected at least 0");
  CHECK(usage_error([] { read_number(typed("0,1"), {0}); }) ==
        "--x: \"0,1\" is not a number, expected at least 0");
}

TEST_CASE("toggles, choices and lists") {
  CHECK(read_toggle(typed("true")));
  CHECK(!read_toggle(typed("off")));
  CHECK(usage_error([] { read_toggle(typed("maybe")); }) == "--x: \"maybe\" is not true or false");
  CHECK(read_choice(typed("sgd"), {"sgd", "lars"}) == "sgd");
  CHECK(usage_error([] {
          read_choice(typed("adam"), {"sgd", "adamw"});
        }) == "--x: \"adam\" is unknown, expected one of sgd, adamw; did you mean adamw?");
  CHECK(read_list(typed("cpu:0,cpu:1")) == std::vector<std::string>{"cpu:0", "cpu:1"});
  CHECK(usage_error([] { read_list(typed("cpu:0,")); }) ==
        "--x: \"cpu:0,\" has an empty entry, expected NAME,NAME");
}
