#include "cli/prediction.h"

#include <cmath>
#include <limits>

#include "kernels/base/error.h"
#include "tests/support/catch.h"

using namespace convoy;
using namespace convoy::cli;

TEST_CASE("guesses are the softmax, likeliest first") {
  // p of logits (0, ln 2, ln 5): (1, 2, 5) / 8
  std::vector<Guess> top = top_guesses({0, std::log(2.0), std::log(5.0)}, {"a", "b"}, 5);
  REQUIRE(top.size() == 3);
  CHECK(top[0].label == 2);
  CHECK(top[0].name == "2");  // no name is known
  CHECK(std::abs(top[0].p - 0.625) < 1e-15);
  CHECK(top[1].name == "b");
  CHECK(std::abs(top[1].p - 0.25) < 1e-15);
  CHECK(top[2].name == "a");
  CHECK(std::abs(top[2].p - 0.125) < 1e-15);
}

TEST_CASE("guesses: probabilities are of all classes, equal ones keep their order") {
  std::vector<Guess> top = top_guesses({7, 7, 7, 7}, {}, 2);
  REQUIRE(top.size() == 2);
  CHECK(top[0].label == 0);
  CHECK(top[1].label == 1);
  CHECK(top[0].p == 0.25);
}

TEST_CASE("guesses: large logits do not overflow, others than finite ones are refused") {
  CHECK(top_guesses({1e4, 0}, {}, 1)[0].p == 1);
  auto kind = [](double logit) {
    try {
      top_guesses({0, logit}, {}, 1);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::internal;
  };
  CHECK(kind(std::nan("")) == ErrorKind::numerics);
  CHECK(kind(std::numeric_limits<double>::infinity()) == ErrorKind::numerics);
}
