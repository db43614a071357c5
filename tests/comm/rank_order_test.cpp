#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/comm/thread_group.h"
#include "tests/support/catch.h"

namespace convoy {
namespace {

using testing::kNothing;
using testing::Notes;
using testing::run_ranks;

/// Values whose sum depends on the order in which they are added.
std::vector<float> awkward(int rank, std::int64_t count) {
  std::mt19937 random(17 + rank);
  std::vector<float> values(count);
  for (float& value : values) {
    const float mantissa = static_cast<float>(random() % 2001) / 1000 - 1;
    value = std::ldexp(mantissa, static_cast<int>(random() % 60) - 30);
  }
  for (std::int64_t i = 3; i < count; i += 101) values[i] = -0.0f;
  for (std::int64_t i = 5; i < count; i += 103) {
    values[i] = std::numeric_limits<float>::denorm_min() * static_cast<float>(rank + 1);
  }
  for (std::int64_t i = 7; i < count; i += 107) {
    values[i] = rank == 1 ? std::numeric_limits<float>::infinity() : 1e38f;
  }
  return values;
}

std::vector<float> sum_by_hand(int n, std::int64_t count) {
  std::vector<float> sum = awkward(0, count);
  for (int rank = 1; rank < n; ++rank) {
    const std::vector<float> more = awkward(rank, count);
    for (std::int64_t i = 0; i < count; ++i) sum[i] += more[i];
  }
  return sum;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

}  // namespace

TEST_CASE("sums are made in rank order, whatever the count: the same bits on all ranks") {
  const int n = GENERATE(2, 3, 5);
  const std::int64_t count = GENERATE(1, 1000, 5000, 100003);
  const std::vector<float> expected = sum_by_hand(n, count);
  Notes notes;
  run_ranks(n, {}, [&](HostCommunicator& rank) {
    std::vector<float> values = awkward(rank.rank(), count);
    rank.all_reduce_now(values.data(), values.data(), count, DType::f32, Reduction::sum);
    notes.expect(same_bits(values, expected), fmt::format("rank {}", rank.rank()));
  });
  INFO("ranks: " << n << ", count: " << count);
  CHECK(notes.text() == kNothing);
}

TEST_CASE("values that the ranks read where they lie are summed to the same bits") {
  const int n = GENERATE(2, 3, 5);
  const std::int64_t count = GENERATE(20000, 100003);
  const bool in_place = GENERATE(true, false);
  const bool one_elsewhere = GENERATE(false, true);  // then nobody reads where they lie
  const std::vector<float> expected = sum_by_hand(n, count);
  const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
  Notes notes;
  run_ranks(n, {}, [&](HostCommunicator& rank) {
    const std::vector<float> own = awkward(rank.rank(), count);
    for (int round = 0; round < 3; ++round) {  // in other memory each time
      const auto memory = rank.make_memory(3 * bytes);
      auto* in = reinterpret_cast<float*>(memory.get() + bytes);
      std::copy(own.begin(), own.end(), in);
      float* out = in_place ? in : in + count;
      std::vector<float> elsewhere(count);
      if (one_elsewhere && rank.rank() == 1 && !in_place) out = elsewhere.data();
      if (one_elsewhere && rank.rank() == 1 && in_place) {
        elsewhere = own;
        in = out = elsewhere.data();
      }
      rank.all_reduce_now(in, out, count, DType::f32, Reduction::sum);
      notes.expect(same_bits({out, out + count}, expected), fmt::format("rank {}", rank.rank()));
      // Nobody may read them any more.
      std::fill(in, in + count, -1.0f);
      std::fill(out, out + count, -1.0f);
    }
  });
  INFO("ranks: " << n << ", count: " << count << ", in place: " << in_place
                 << ", one elsewhere: " << one_elsewhere);
  CHECK(notes.text() == kNothing);
}

TEST_CASE("a communicator makes no memory where nobody would read it") {
  run_ranks(1, {}, [](HostCommunicator& rank) { CHECK(rank.make_memory(64) == nullptr); });
  ThreadOptions ring;
  ring.order = ReduceOrder::ring;
  Notes notes;
  run_ranks(2, ring,
            [&](HostCommunicator& rank) { notes.expect(!rank.make_memory(64), "memory"); });
  CHECK(notes.text() == kNothing);
}

TEST_CASE("the ring's order gives the same bits on all ranks") {
  const int n = 5;
  const std::int64_t count = 100003;
  std::vector<std::vector<float>> results(n);
  ThreadOptions options;
  options.order = ReduceOrder::ring;
  run_ranks(n, options, [&](HostCommunicator& rank) {
    std::vector<float> values = awkward(rank.rank(), count);
    rank.all_reduce_now(values.data(), values.data(), count, DType::f32, Reduction::sum);
    results[rank.rank()] = values;
  });
  for (int rank = 1; rank < n; ++rank) CHECK(same_bits(results[rank], results[0]));
  CHECK_FALSE(same_bits(results[0], sum_by_hand(n, count)));
}

TEST_CASE("one NaN makes the maximum NaN on all ranks") {
  const int who = GENERATE(0, 1, 2);
  Notes notes;
  run_ranks(3, {}, [&](HostCommunicator& rank) {
    double value = rank.rank() == who ? std::nan("") : rank.rank();
    rank.all_reduce_now(&value, &value, 1, DType::f64, Reduction::max);
    notes.expect(std::isnan(value), fmt::format("rank {} has {}", rank.rank(), value));
  });
  CHECK(notes.text() == kNothing);
}

TEST_CASE("bf16 is added in float and rounded once, to even") {
  // 256 + 0.75 + 0.75 is 257.5: to nearest, of 256 and 258, that is 258; added in bf16 it stays
  // 256.
  const std::uint16_t parts[] = {0x4380, 0x3f40, 0x3f40};
  Notes notes;
  run_ranks(3, {}, [&](HostCommunicator& rank) {
    std::uint16_t value = parts[rank.rank()];
    rank.all_reduce_now(&value, &value, 1, DType::bf16, Reduction::sum);
    notes.expect(value == 0x4381, fmt::format("rank {}: {:x}", rank.rank(), value));
  });
  CHECK(notes.text() == kNothing);
}

}  // namespace convoy
