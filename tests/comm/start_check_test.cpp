#include "comm/start_check.h"

#include "tests/support/catch.h"

namespace convoy {

TEST_CASE("equal facts have no differences") {
  const Facts facts = {{"version", "0.1"}, {"data", "60 images"}};
  CHECK(differences({facts}).empty());
  CHECK(differences({facts, facts, facts}).empty());
}

TEST_CASE("each difference is named with ranks and both values") {
  const Facts first = {{"version", "0.1"}, {"lr", "0.1"}};
  const Facts second = {{"version", "0.2"}, {"lr", "0.1"}};
  const Facts third = {{"lr", "0.2"}, {"seed", "5"}};
  CHECK(
      differences({first, second, third}) ==
      "version is '0.1' on rank 0, '0.2' on rank 1; version is '0.1' on rank 0, not set on rank 2; "
      "lr is '0.1' on rank 0, '0.2' on rank 2; seed is not set on rank 0, '5' on rank 2");
}

TEST_CASE("many differences are counted") {
  std::vector<Facts> all;
  for (int rank = 0; rank < 31; ++rank) all.push_back({{"pid", std::to_string(rank)}});
  const std::string text = differences(all);
  CHECK(text.find("'20' on rank 20; and 10 more") != text.npos);
  CHECK(text.find("rank 21") == text.npos);
}

}  // namespace convoy
