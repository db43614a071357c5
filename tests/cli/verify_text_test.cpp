// The lines of `verify` and its end.
#include "cli/verify_text.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using namespace convoy::cli;

namespace {

VerifyResult different() {
  VerifyResult result;
  result.equal = false;
  result.steps = 3;
  result.compared = 681;
  result.loss = 2.5;
  result.gradient = {0.125, "fc.weight"};
  result.statistic = {std::numeric_limits<double>::infinity(), "bn1.running_var"};
  result.first = FirstDifference{2, "forward", "layer3.0.conv1", "", 1, 3};
  return result;
}

}  // namespace

TEST_CASE("verify's line of JSON has what differs, by name") {
  Options options;
  options.json = true;
  const auto lines = verify_lines(options, different());
  REQUIRE(lines.size() == 1);
  const auto line = nlohmann::json::parse(lines[0]);
  CHECK(line["type"] == "verify");
  CHECK(line["equal"] == false);
  CHECK(line["bitwise"] == true);
  CHECK(line["steps"] == 3);
  CHECK(line["loss"] == 2.5);
  CHECK(line["largest"]["loss"] == 0);
  CHECK(line["largest"]["gradient"] == 0.125);
  CHECK(line["largest"]["gradient_name"] == "fc.weight");
  CHECK(line["largest"]["statistic"].is_null());
  CHECK(line["largest"]["statistic_name"] == "bn1.running_var");
  CHECK(line["largest"]["weight_name"].is_null());
  CHECK(line["first_layer"] == "layer3.0.conv1");
  CHECK(line["first_tensor"].is_null());
  CHECK(line["first_step"] == 2);
  CHECK(line["first_replica"] == 1);
  CHECK(line["first_micro_batch"] == 3);
}

TEST_CASE("verify's line of an equal layout names nothing") {
  Options options;
  options.json = true;
  VerifyResult result;
  result.steps = 1;
  const auto line = nlohmann::json::parse(verify_lines(options, result).at(0));
  CHECK(line["equal"] == true);
  for (const char* key : {"first_layer", "first_tensor", "first_phase", "first_step",
                          "first_replica", "first_micro_batch"}) {
    INFO(key);
    CHECK(line.at(key).is_null());
  }
}

TEST_CASE("verify's text names the first difference and the largest ones") {
  const auto lines = verify_lines(Options(), different());
  CHECK(lines.front().starts_with("not equal: 3 steps"));
  CHECK(lines.back() ==
        "first difference: step 2, forward: layer3.0.conv1, micro-batch 3, replica 1");
  CHECK(lines.at(4) == "  gradients        0.125, fc.weight");
  CHECK(lines.at(5) == "  running values   missing or no number, bn1.running_var");
}

TEST_CASE("a difference is a numerics error") {
  convoy::testing::expect_error(ErrorKind::numerics, {"not equal", "layer3.0.conv1"},
                                [] { check_equal(different()); });
  CHECK_NOTHROW(check_equal(VerifyResult()));
}
