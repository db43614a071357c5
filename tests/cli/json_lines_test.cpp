#include "cli/json_lines.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "tests/support/catch.h"

using namespace convoy::cli;

TEST_CASE("json numbers read back the same") {
  CHECK(to_json(0.1) == "0.1");
  CHECK(to_json(1.0 / 3) == "0.3333333333333333");
  CHECK(to_json(5.0) == "5");
  CHECK(to_json(-0.0) == "-0");
  CHECK(to_json(0.1f) == "0.1");
  for (double value : {5e-324, 1.7976931348623157e308, 2.2250738585072014e-308, 1e22, M_PI}) {
    CHECK(std::strtod(to_json(value).c_str(), nullptr) == value);
  }
}

TEST_CASE("json has no NaN and no infinity") {
  CHECK(to_json(std::nan("")) == "null");
  CHECK(to_json(std::numeric_limits<double>::infinity()) == "null");
  CHECK(to_json(-std::numeric_limits<float>::infinity()) == "null");
}

TEST_CASE("json strings are escaped") {
  CHECK(to_json("a\"b\\c") == R"("a\"b\\c")");
  CHECK(to_json("tab\tline\n\x01") == R"("tab\tline\n\u0001")");
  CHECK(to_json("naïve €𝄞") == "\"naïve €𝄞\"");
}

TEST_CASE("json strings show bytes that are not UTF-8") {
  CHECK(to_json("caf\xE9.png") == R"("caf\\xE9.png")");      // Latin-1
  CHECK(to_json("\xC3") == R"("\\xC3")");                    // cut
  CHECK(to_json("\xC0\x80") == R"("\\xC0\\x80")");           // overlong
  CHECK(to_json("\xE0\x80\x80") == R"("\\xE0\\x80\\x80")");  // overlong
  CHECK(to_json("\xED\xA0\x80") == R"("\\xED\\xA0\\x80")");  // surrogate
  CHECK(to_json("\xF4\x90\x80\x80").size() == 2 + 4 * 5);    // above 10FFFF
  CHECK(to_json("\xFF\x41") == R"("\\xFF)"
                               "A\"");
}

TEST_CASE("json objects keep the order and the types of their members") {
  JsonObject inner{{"p", 0.5f}};
  JsonObject line{{"type", "step"}, {"step", std::int64_t{16777217}}, {"yes", true}};
  line.add("none", std::optional<int>());
  line.add("names", std::vector<std::string>{"a", "b\""}).add("top", std::vector{inner, inner});
  line.add("shape", std::vector<std::int64_t>{1, 2}).add("empty", std::vector<float>{});
  CHECK(line.text() ==
        R"({"type":"step","step":16777217,"yes":true,"none":null,"names":["a","b\""],)"
        R"("top":[{"p":0.5},{"p":0.5}],"shape":[1,2],"empty":[]})");
}
