// A window's micro-batches, by hand.
#include "engine/train/micro_batch_plan.h"

#include "tests/support/catch.h"

using namespace convoy;

namespace {

using Images = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("8 images in 3 are 3, 3, 2; ids count on over the batches of a window") {
  const MicroBatchPlan plan({{8}, {5}}, {1, {.count = 3}});
  CHECK(plan.images_of(0) == Images{3, 3, 2, 2, 2, 1});
  CHECK(plan.at(2).begins == Images{6});
  CHECK(plan.at(3).batch == 1);
  CHECK(plan.at(3).begins == Images{0});
  CHECK(plan.last(0) == 5);
  for (int id = 0; id < 6; ++id) {
    CHECK(plan.ends_batch(id, 0) == (id == 2 || id == 5));
    CHECK(plan.closes_batch(id) == (id == 2 || id == 5));
  }
}

TEST_CASE("fewer images than micro-batches make fewer, a short last batch too") {
  CHECK(MicroBatchPlan({{2}}, {1, {.count = 5}}).images_of(0) == Images{1, 1});
  CHECK(MicroBatchPlan({{8}, {3}}, {1, {.size = 3}}).images_of(0) == Images{3, 3, 2, 3});
  CHECK(MicroBatchPlan({{8}}, {1, {}}).images_of(0) == Images{8});
  CHECK(MicroBatchPlan({{0}, {0}}, {1, {}}).count() == 0);
  CHECK(MicroBatchPlan({{0}}, {1, {}}).last(0) == -1);
}

TEST_CASE("a micro-batch empty on some replicas is passed over there, or run without images") {
  const Images shares = {4, 1, 0};
  const MicroBatchPlan apart({shares}, {3, {.size = 2}, false});
  CHECK(apart.count() == 2);
  CHECK(apart.images_of(0) == Images{2, 2});
  CHECK(apart.images_of(1) == Images{1, 0});
  CHECK(apart.runs(1, 0));
  CHECK_FALSE(apart.runs(1, 1));
  CHECK(apart.ends_batch(0, 1));
  CHECK_FALSE(apart.ends_batch(0, 0));
  CHECK(apart.last(0) == 1);
  CHECK(apart.last(1) == 0);
  CHECK(apart.last(2) == -1);
  const MicroBatchPlan joined({shares}, {3, {.size = 2}, true});
  for (int replica = 0; replica < 3; ++replica) {
    CHECK(joined.runs(1, replica));
    CHECK(joined.last(replica) == 1);
    CHECK(joined.ends_batch(1, replica));
  }
}
