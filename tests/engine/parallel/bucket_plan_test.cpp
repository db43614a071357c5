// Buckets: closed forms, and each tensor in one of them.
#include "engine/parallel/bucket_plan.h"

#include <numeric>

#include "kernels/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

using Sizes = std::vector<std::int64_t>;

// ResNet-50's parameters in model order: a convolution's weight, then its norm's two.
Sizes resnet50() {
  Sizes bytes;
  auto conv = [&](std::int64_t in, std::int64_t out, std::int64_t kernel) {
    for (std::int64_t count : {in * out * kernel * kernel, out, out}) bytes.push_back(4 * count);
  };
  conv(3, 64, 7);
  std::int64_t in = 64, width = 64;
  for (int blocks : {3, 4, 6, 3}) {
    for (int block = 0; block < blocks; ++block) {
      conv(in, width, 1);
      conv(width, width, 3);
      conv(width, 4 * width, 1);
      if (block == 0) conv(in, 4 * width, 1);  // downsample
      in = 4 * width;
    }
    width *= 2;
  }
  bytes.push_back(4 * 2048 * 1000);
  bytes.push_back(4 * 1000);
  return bytes;
}

Sizes sums_of(const Sizes& bytes, const BucketPlan& plan) {
  Sizes sums;
  for (const auto& bucket : plan) {
    sums.push_back(0);
    for (std::size_t i : bucket) sums.back() += bytes[i];
  }
  return sums;
}

}  // namespace

TEST_CASE("buckets: ResNet-50") {
  const Sizes bytes = resnet50();
  REQUIRE(bytes.size() == 161);
  REQUIRE(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}) == 102'228'128);
  const BucketPlan plan = plan_buckets(bytes);
  CHECK(sums_of(bytes, plan) == Sizes{8'196'000, 31'502'336, 26'255'360, 26'550'272, 9'724'160});
  std::size_t next = bytes.size();
  for (const auto& bucket : plan) {
    for (std::size_t i : bucket) CHECK(i == --next);  // backward, each once
  }
  CHECK(next == 0);
}

TEST_CASE("buckets: limits") {
  const Sizes bytes{5, 1, 4, 2, 3};
  CHECK(plan_buckets(bytes, {3, 5}) == BucketPlan{{4}, {3, 2}, {1, 0}});
  CHECK(plan_buckets(bytes, {4, 100}) == BucketPlan{{4, 3}, {2, 1, 0}});
  CHECK(plan_buckets(bytes, {0, 0}) == BucketPlan{{4}, {3}, {2}, {1}, {0}});
  CHECK(plan_buckets(bytes, {15, 0}) == BucketPlan{{4, 3, 2, 1, 0}});
  CHECK(plan_buckets({}).empty());
  expect_error(ErrorKind::usage, {"buckets", "-1"}, [&] { plan_buckets(bytes, {0, -1}); });
}

}  // namespace convoy::testing
