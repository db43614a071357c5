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

TEST_CASE("in sync modes all replicas run as many micro-batches as the one that has most") {
  CHECK(passes_of({3, 2}, {.replicas = 2, .rule = {.size = 2}}) == Parts{2, 1});
  CHECK(passes_of({3, 2}, {.replicas = 2, .rule = {.size = 2}, .together = true}) == Parts{2, 2});
  CHECK(passes_of({1, 0}, {.replicas = 2}) == Parts{1, 0});
  CHECK(passes_of({1, 0}, {.replicas = 2, .together = true}) == Parts{1, 1});
  CHECK(passes_of({0, 0}, {.replicas = 2, .together = true}) == Parts{0, 0});
}

TEST_CASE("what batch norm normalises together depends on the mode") {
  CHECK(groups_of({3, 2}, {.replicas = 2, .rule = {.size = 2}}) == Parts{2, 1, 2});
  CHECK(groups_of({3, 2}, {.replicas = 2, .rule = {.size = 2}, .together = true}) == Parts{4, 1});
  CHECK(groups_of({0, 1, 0}, {.replicas = 3}) == Parts{1});
}

TEST_CASE("the smallest group of an epoch is known before it starts") {
  CHECK(EpochPlan{.images = 9, .batch = 4}.smallest_group({}) == 1);
  CHECK(EpochPlan{.images = 8, .batch = 4}.smallest_group({}) == 4);
  CHECK(EpochPlan{.images = 8, .batch = 4}.smallest_group({.rule = {.count = 3}}) == 1);
  CHECK(EpochPlan{.images = 8, .batch = 8}.smallest_group({.rule = {.size = 3}}) == 2);
  CHECK(EpochPlan{.images = 3, .batch = 32}.smallest_group({}) == 3);
  // 36 images in batches of 32: the last one gives each of four replicas a single image.
  CHECK(EpochPlan{.images = 36, .batch = 32}.smallest_group({.replicas = 4}) == 1);
  CHECK(EpochPlan{.images = 36, .batch = 32}.smallest_group({.replicas = 4, .together = true}) ==
        4);
  CHECK(EpochPlan{.images = 3, .batch = 32}.smallest_group({.replicas = 4, .together = true}) == 3);
}

TEST_CASE("groups that are too small are taken off from the end") {
  Parts shares = {3, 1, 0};
  CHECK(drop_small_groups(shares, {.replicas = 3}, 2) == 1);
  CHECK(shares == Parts{3, 0, 0});
  shares = {3, 2, 1};  // of size 2: 2 + 2 + 1 together, then 1
  CHECK(drop_small_groups(shares, {.replicas = 3, .rule = {.size = 2}, .together = true}, 2) == 1);
  CHECK(shares == Parts{2, 2, 1});
  shares = {1, 1, 0};
  CHECK(drop_small_groups(shares, {.replicas = 3, .together = true}, 2) == 0);
  shares = {0, 1, 0};
  CHECK(drop_small_groups(shares, {.replicas = 3, .together = true}, 2) == 1);
  CHECK(shares == Parts{0, 0, 0});
}
