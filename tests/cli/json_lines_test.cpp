#include "cli/json_lines.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "tests/support/catch.h"

using namespace convoy::cli;

TEST_CASE("json numbers read back the same") {
  CHECK(json_number(0.1) == "0.1");
  CHECK(json_number(1.0 / 3) == "0.3333333333333333");
  CHECK(json_number(5.0) == "5");
  CHECK(json_number(-0.0) == "-0");
  CHECK(json_number(0.1f) == "0.1");
  for (double value : {5e-324, 1.7976931348623157e308, 2.2250738585072014e-308, 1e22, M_PI}) {
    CHECK(std::strtod(json_number(value).c_str(), nullptr) == value);
  }
}

TEST_CASE("json has no NaN and no infinity") {
  CHECK(json_number(std::nan("")) == "null");
  CHECK(json_number(std::numeric_limits<double>::infinity()) == "null");
  CHECK(json_number(-std::numeric_limits<float>::infinity()) == "null");
}

TEST_CASE("json strings are escaped") {
  CHECK(json_string("a\"b\\c") == R"("a\"b\\c")");
  CHECK(json_string("tab\tline\n\x01") == R"("tab\tline\n\u0001")");
  CHECK(json_string("naïve €𝄞") == "\"naïve €𝄞\"");
}

TEST_CASE("json strings show bytes that are not UTF-8") {
  CHECK(json_string("caf\xE9.png") == R"("caf\\xE9.png")");      // Latin-1
  CHECK(json_string("\xC3") == R"("\\xC3")");                    // cut
  CHECK(json_string("\xC0\x80") == R"("\\xC0\\x80")");           // overlong
  CHECK(json_string("\xE0\x80\x80") == R"("\\xE0\\x80\\x80")");  // overlong
  CHECK(json_string("\xED\xA0\x80") == R"("\\xED\\xA0\\x80")");  // surrogate
  CHECK(json_string("\xF4\x90\x80\x80").size() == 2 + 4 * 5);    // above 10FFFF
  CHECK(json_string("\xFF\x41") == R"("\\xFF)"
                                   "A\"");
}

TEST_CASE("json objects keep the order and the types of their members") {
  JsonObject inner;
  inner.add("p", 0.5f);
  JsonObject line;
  line.add("type", "step").add("step", std::int64_t{16777217}).add("yes", true).add_null("none");
  line.add("names", std::vector<std::string>{"a", "b\""}).add("top", std::vector{inner, inner});
  line.add("shape", std::vector<std::int64_t>{1, 2}).add("empty", std::vector<float>{});
  CHECK(line.text() ==
        R"({"type":"step","step":16777217,"yes":true,"none":null,"names":["a","b\""],)"
        R"("top":[{"p":0.5},{"p":0.5}],"shape":[1,2],"empty":[]})");
}
