#include "bench/median.h"

#include "tests/support/catch.h"

using convoy::median;

TEST_CASE("the median is the middle, or the mean of the two in the middle") {
  CHECK(median({3}) == 3);
  CHECK(median({9, 1, 2}) == 2);
  CHECK(median({1, 3}) == 2);
  CHECK(median({8, 1, 2, 4}) == 3);
  CHECK_THROWS_AS(median({}), convoy::Error);
}
