#include "engine/data/order.h"

#include <algorithm>
#include <set>

#include "engine/data/random.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

using namespace convoy;
using convoy::testing::expect_error;

TEST_CASE("order: three epochs of 22 images are three permutations") {
  std::set<std::vector<std::int64_t>> orders;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int64_t> order = epoch_order(5, epoch, 22);
    CHECK(order == epoch_order(5, epoch, 22));
    CHECK(order != epoch_order(6, epoch, 22));
    orders.insert(order);
    std::sort(order.begin(), order.end());
    CHECK(order == plain_order(22));
  }
  CHECK(orders.size() == 3);
}

TEST_CASE("order: seeds and epochs use all their bits") {
  CHECK(epoch_order(1, 0, 50) != epoch_order(1 + (std::uint64_t{1} << 32), 0, 50));
  CHECK(epoch_order(1, 0, 50) != epoch_order(1, std::int64_t{1} << 32, 50));
}

TEST_CASE("order: no images, one image, too few") {
  CHECK(epoch_order(1, 0, 0).empty());
  CHECK(epoch_order(1, 0, 1) == std::vector<std::int64_t>{0});
  expect_error(ErrorKind::usage, {"-1", "at least 0"}, [] { plain_order(-1); });
}

TEST_CASE("order: all positions are equally likely") {
  // 4 positions, 4000 epochs: 1000 expected, deviation 27; 5 deviations allowed.
  int counts[4] = {};
  for (int epoch = 0; epoch < 4000; ++epoch) ++counts[epoch_order(9, epoch, 4)[0]];
  for (int count : counts) CHECK(std::abs(count - 1000) < 137);
}

TEST_CASE("random, order: values of fixtures/make_philox_values.py") {
  DataRandom random(0x0123456789ABCDEF, RandomPurpose::augment, 7, 41);
  for (std::uint32_t expected :
       {0x0A91E8ACu, 0x7498743Du, 0xB89D7EB8u, 0x99FA6FBDu, 0xB98F4F61u, 0x14857915u}) {
    CHECK(random.next32() == expected);
  }
  CHECK(epoch_order(5, 1, 12) == std::vector<std::int64_t>{7, 11, 0, 4, 8, 10, 2, 9, 3, 6, 1, 5});
}

TEST_CASE("random: bounds") {
  DataRandom random(3, RandomPurpose::augment, 1, 2);
  std::set<std::int64_t> seen;
  for (int i = 0; i < 200; ++i) {
    double v = random.uniform(-2, 3);
    CHECK((v >= -2 && v < 3));
    seen.insert(random.below(5));
  }
  CHECK(seen == std::set<std::int64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("order: shares are the larger first and leave nothing out") {
  std::vector<std::int64_t> counts;
  std::int64_t at = 0;
  for (int part = 0; part < 3; ++part) {
    Share share = share_of(8, 3, part);
    CHECK(share.begin == at);
    at += share.count;
    counts.push_back(share.count);
  }
  CHECK(counts == std::vector<std::int64_t>{3, 3, 2});
  CHECK(share_of(1, 4, 0).count == 1);
  CHECK(share_of(1, 4, 3).count == 0);
  expect_error(ErrorKind::usage, {"part 4 of 4"}, [] { share_of(8, 4, 4); });
}
