#include "engine/train/batch_plan.h"

#include <numeric>

#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using Parts = std::vector<std::int64_t>;

TEST_CASE("a batch is divided by number or by size of micro-batches") {
  CHECK(split_batch(8, {.count = 3}) == Parts{3, 3, 2});
  CHECK(split_batch(5, {.count = 4}) == Parts{2, 1, 1, 1});
  CHECK(split_batch(8, {.count = 9}) == Parts{1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(split_batch(8, {.size = 3}) == Parts{3, 3, 2});
  CHECK(split_batch(7, {.size = 8}) == Parts{7});
  CHECK(split_batch(7, {}) == Parts{7});
  CHECK(split_batch(0, {.count = 3}).empty());
  testing::expect_error(ErrorKind::usage, {"2", "4", "not both"},
                        [] { split_batch(8, {.size = 2, .count = 4}); });
}

TEST_CASE("windows cover an epoch once, the last one is short") {
  const EpochPlan plan{.images = 11, .batch = 4, .accumulate = 2};
  CHECK(plan.steps() == 2);
  CHECK(plan.window_at(0).images == 8);
  CHECK(plan.window_at(0).batches == 2);
  CHECK(plan.window_at(8).images == 3);
  CHECK(plan.window_at(8).batches == 1);
  for (std::int64_t images : {1, 7, 60, 97}) {
    for (std::int64_t batch : {1, 4, 32, 100}) {
      const EpochPlan each{images, batch, 3};
      std::int64_t done = 0, steps = 0;
      for (; done < images; ++steps) done += each.window_at(done).images;
      CHECK(done == images);
      CHECK(steps == each.steps());
    }
  }
}

TEST_CASE("the smallest micro-batch of an epoch is known before it starts") {
  CHECK(EpochPlan{.images = 9, .batch = 4}.smallest_micro_batch({}) == 1);
  CHECK(EpochPlan{.images = 8, .batch = 4}.smallest_micro_batch({}) == 4);
  CHECK(EpochPlan{.images = 8, .batch = 4}.smallest_micro_batch({.count = 3}) == 1);
  CHECK(EpochPlan{.images = 8, .batch = 8}.smallest_micro_batch({.size = 3}) == 2);
  CHECK(EpochPlan{.images = 3, .batch = 32}.smallest_micro_batch({}) == 3);
}
