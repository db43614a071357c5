#include "cli/nearest.h"

#include "tests/support/catch.h"

using namespace convoy::cli;

TEST_CASE("edit distance counts insertions, deletions, changes and swaps") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("batch", "bacth") == 1);
  CHECK(edit_distance("ca", "abc") == 3);  // a swapped pair is not changed again
}

TEST_CASE("the nearest name is found, and none where all are far") {
  const std::vector<std::string> names = {"batch", "epochs", "lr", "loss"};
  CHECK(nearest("bacth", names) == "batch");
  CHECK(nearest("epoch", names) == "epochs");
  CHECK(nearest("lr-rate", names).empty());
  CHECK(nearest("x", names).empty());
  CHECK(did_you_mean("epoch", names, "--") == "; did you mean --epochs?");
  CHECK(did_you_mean("zzzzzz", names, "--").empty());
}
