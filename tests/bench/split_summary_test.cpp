#include "bench/split_summary.h"

#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy {
namespace {

using testing::expect_error;

SplitRow row(const char* mode, std::int64_t split, std::vector<double> seconds) {
  SplitRow made;
  made.mode = mode;
  made.split = split;
  made.seconds = std::move(seconds);
  return made;
}

// A batch of 120 in 8 s on one device, 6 s there in micro-batches of 12.
std::vector<SplitRow> measured() {
  std::vector<SplitRow> rows = {row("single", 120, {8, 9, 7}), row("single", 12, {6, 6, 6}),
                                row("model-parallel", 120, {10, 10, 10}),
                                row("pipeline", 12, {4, 4, 4}),
                                row("data-parallel", 60, {5, 5, 5})};
  rows[3].schedule = "zb-h1";
  rows[3].ceiling = 1.6;
  rows[2].transfer_share = 0.25;
  sum_up(rows, 120);
  return rows;
}

TEST_CASE("bench split: rows follow from their seconds") {
  const std::vector<SplitRow> rows = measured();
  CHECK(rows[0].mean_s == 8);
  CHECK(rows[0].median_s == 8);
  CHECK(rows[0].std_s == 1);  // ((0 + 1 + 1) / 2)^(1/2)
  CHECK(rows[0].images_per_s == 15);
  CHECK(rows[1].std_s == 0);
  CHECK(rows[3].speed_up == 2);
  CHECK(rows[3].speed_up_same_split == 1.5);
  CHECK(rows[3].share_of_ceiling == 0.9375);
  CHECK(rows[2].speed_up_same_split == 0.8);
  CHECK_FALSE(rows[2].share_of_ceiling);
  CHECK_FALSE(rows[4].speed_up_same_split);  // nothing was measured in micro-batches of 60
}

TEST_CASE("bench split: the mean follows an outlier, the median does not") {
  std::vector<SplitRow> rows = {row("single", 10, {1, 1, 4})};
  sum_up(rows, 10);
  CHECK(rows[0].mean_s == 2);
  CHECK(rows[0].images_per_s == 10);
}

TEST_CASE("bench split: verdicts on the claims") {
  std::vector<SplitRow> rows = measured();
  std::vector<SplitVerdict> found = verdicts(rows);
  REQUIRE(found.size() == 3);
  CHECK(found[0].holds);
  CHECK(found[0].ratio == 0.8);
  CHECK(found[0].against == "single 120");
  CHECK(found[0].transfer_share == 0.25);
  CHECK(found[1].holds);
  CHECK(found[1].ratio == 1.5);
  CHECK(found[1].row == "pipeline 12, zb-h1");
  CHECK(found[1].against == "single 12");
  CHECK(found[2].holds);
  CHECK(found[2].ratio == 1.25);

  rows[2].seconds = {7, 7, 7};  // model parallel faster than one device
  rows[3].seconds = {6, 6, 6};  // no faster than one device in such micro-batches
  sum_up(rows, 120);
  found = verdicts(rows);
  CHECK_FALSE(found[0].holds);
  CHECK_FALSE(found[1].holds);
  CHECK(found[1].ratio == 1);
  CHECK_FALSE(found[2].holds);
}

TEST_CASE("bench split: one device alone makes no claims") {
  std::vector<SplitRow> rows = {row("single", 10, {1})};
  sum_up(rows, 10);
  CHECK(rows[0].std_s == 0);
  CHECK(verdicts(rows).empty());
}

TEST_CASE("bench split: rows that cannot be summed up") {
  std::vector<SplitRow> no_whole = {row("single", 5, {1})};
  expect_error(ErrorKind::usage, {"whole batch"}, [&] { sum_up(no_whole, 10); });
  std::vector<SplitRow> no_steps = {row("single", 10, {})};
  expect_error(ErrorKind::usage, {"no values"}, [&] { sum_up(no_steps, 10); });
}

}  // namespace
}  // namespace convoy
