#include "comm/collectives.h"

#include <cstring>

#include "tests/comm/thread_group.h"
#include "tests/support/catch.h"

namespace convoy {
namespace {

using testing::kNothing;
using testing::Notes;
using testing::run_ranks;

/// Element i of rank r is (r + 1) * (i % 5 + 1): sums, means and maxima over up to 5 ranks are
/// exact in every type.
double value_of(int rank, std::int64_t i) {
  return (rank + 1.0) * static_cast<double>(i % 5 + 1);
}

double joined(Reduction reduction, int n, std::int64_t i) {
  const double x = static_cast<double>(i % 5 + 1);
  if (reduction == Reduction::max) return n * x;
  const double sum = n * (n + 1) * x / 2;
  return reduction == Reduction::mean ? sum / n : sum;
}

/// The bytes of `value` as an element of `dtype`; bf16 is the upper half of a float.
void put(std::byte* to, DType dtype, double value) {
  const auto copy = [&](auto typed) { std::memcpy(to, &typed, sizeof typed); };
  switch (dtype) {
    case DType::f32:
      return copy(static_cast<float>(value));
    case DType::f64:
      return copy(value);
    case DType::i64:
      return copy(static_cast<std::int64_t>(value));
    case DType::i32:
      return copy(static_cast<std::int32_t>(value));
    case DType::u8:
      return copy(static_cast<std::uint8_t>(value));
    case DType::bf16: {
      const auto whole = static_cast<float>(value);
      std::memcpy(to, reinterpret_cast<const std::byte*>(&whole) + 2, 2);
    }
  }
}

using Bytes = std::vector<std::byte>;

template <class Value>
Bytes fill(DType dtype, std::int64_t begin, std::int64_t end, Value&& value) {
  const std::size_t element = size_of(dtype);
  Bytes bytes((end - begin) * element);
  for (std::int64_t i = begin; i < end; ++i) {
    put(bytes.data() + (i - begin) * element, dtype, value(i));
  }
  return bytes;
}

struct Case {
  std::int64_t count;
  DType dtype;
  Reduction reduction;

  std::string text(const char* call, const HostCommunicator& rank) const {
    return fmt::format("{} of {} {}, reduction {}, rank {} of {}", call, count, name(dtype),
                       static_cast<int>(reduction), rank.rank(), rank.size());
  }
};

void try_all_reduce(HostCommunicator& rank, const Case& c, Notes& notes) {
  const auto expected =
      fill(c.dtype, 0, c.count, [&](auto i) { return joined(c.reduction, rank.size(), i); });
  Bytes in = fill(c.dtype, 0, c.count, [&](auto i) { return value_of(rank.rank(), i); });
  const Bytes before = in;
  Bytes out(in.size());
  rank.all_reduce_now(in.data(), out.data(), c.count, c.dtype, c.reduction);
  notes.expect(out == expected && in == before, c.text("all_reduce", rank));
  rank.all_reduce_now(in.data(), in.data(), c.count, c.dtype, c.reduction);
  notes.expect(in == expected, c.text("all_reduce in place", rank));
}

void try_reduce_scatter(HostCommunicator& rank, const Case& c, Notes& notes) {
  const Chunk mine = chunk_of(c.count, rank.rank(), rank.size());
  const auto expected = fill(c.dtype, mine.begin, mine.end,
                             [&](auto i) { return joined(c.reduction, rank.size(), i); });
  Bytes in = fill(c.dtype, 0, c.count, [&](auto i) { return value_of(rank.rank(), i); });
  Bytes out(expected.size());
  rank.reduce_scatter_now(in.data(), out.data(), c.count, c.dtype, c.reduction);
  notes.expect(out == expected, c.text("reduce_scatter", rank));
  std::byte* place = in.data() + mine.begin * size_of(c.dtype);
  rank.reduce_scatter_now(in.data(), place, c.count, c.dtype, c.reduction);
  notes.expect(std::equal(expected.begin(), expected.end(), place),
               c.text("reduce_scatter in place", rank));
}

void try_all_gather(HostCommunicator& rank, std::int64_t count, Notes& notes) {
  const auto value = [](std::int64_t r, std::int64_t i) { return r * 1000003 + i; };
  std::vector<std::int64_t> in(count);
  std::vector<std::int64_t> expected;
  for (std::int64_t i = 0; i < count; ++i) in[i] = value(rank.rank(), i);
  for (int r = 0; r < rank.size(); ++r) {
    for (std::int64_t i = 0; i < count; ++i) expected.push_back(value(r, i));
  }
  std::vector<std::int64_t> out(expected.size());
  rank.all_gather_now(in.data(), out.data(), count * 8);
  notes.expect(out == expected, fmt::format("all_gather of {}", count));
  std::vector<std::int64_t> both(expected.size());
  std::copy(in.begin(), in.end(), both.begin() + rank.rank() * count);
  rank.all_gather_now(both.data() + rank.rank() * count, both.data(), count * 8);
  notes.expect(both == expected, fmt::format("all_gather of {} in place", count));
}

void try_broadcast(HostCommunicator& rank, std::int64_t count, Notes& notes) {
  for (int root = 0; root < rank.size(); ++root) {
    std::vector<std::int32_t> values(count, rank.rank());
    rank.broadcast_now(values.data(), values.size() * 4, root);
    notes.expect(values == std::vector<std::int32_t>(count, root),
                 fmt::format("broadcast of {} from {} to {}", count, root, rank.rank()));
  }
}

void try_all(HostCommunicator& rank, std::int64_t count, Notes& notes) {
  const bool large = count > 100000;  // only the commonest type then
  for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i64, DType::i32, DType::u8}) {
    if (large && dtype != DType::f32) continue;
    for (Reduction reduction : {Reduction::sum, Reduction::mean, Reduction::max}) {
      if (reduction == Reduction::mean && !is_floating(dtype)) continue;
      try_all_reduce(rank, {count, dtype, reduction}, notes);
      try_reduce_scatter(rank, {count, dtype, reduction}, notes);
    }
  }
  try_all_gather(rank, count, notes);
  try_broadcast(rank, count, notes);
}

}  // namespace

TEST_CASE("collectives give the closed forms for any group, count, type and order") {
  const int n = GENERATE(1, 2, 3, 5);
  ThreadOptions options;
  options.order = GENERATE(ReduceOrder::ranks, ReduceOrder::ring);
  // Two slots of 256 bytes: the smallest counts are cut into pieces, and channels are often full.
  options.ring = GENERATE(RingShape{}, RingShape{2, 256});
  Notes notes;
  run_ranks(n, options, [&](HostCommunicator& rank) {
    for (std::int64_t count : {0, 1, n - 1, 7, 1000}) try_all(rank, count, notes);
    if (options.ring.slots > 2) try_all(rank, 300001, notes);
  });
  INFO("ranks: " << n << ", order: " << static_cast<int>(options.order));
  CHECK(notes.text() == kNothing);
}

TEST_CASE("chunks are those of the definition, also where the product leaves 64 bits") {
  CHECK(chunk_of(10, 0, 3).end == 3);
  CHECK(chunk_of(10, 1, 3).begin == 3);
  CHECK(chunk_of(10, 1, 3).end == 6);
  CHECK(chunk_of(10, 2, 3).end == 10);
  CHECK(chunk_of(1, 0, 2).count() == 0);
  const std::int64_t most = std::int64_t{1} << 62;
  CHECK(chunk_of(most, 3, 4).begin == most / 4 * 3);
  CHECK(chunk_of(most, 3, 4).end == most);
}

}  // namespace convoy
