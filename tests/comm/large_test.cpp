// Transfers of more than 2 GiB and more than 2^31 elements: counts have 64 bits all the way.
#include <array>
#include <cstdint>
#include <vector>

#include "tests/comm/thread_group.h"
#include "tests/support/catch.h"

namespace convoy::testing {
namespace {

constexpr std::int64_t kCount = (std::int64_t{1} << 31) + 16;

}  // namespace

TEST_CASE("2^31 + 16 elements are broadcast and summed up to both ends") {
  std::array<std::vector<std::uint8_t>, 2> values;
  run_ranks(2, {}, [&](HostCommunicator& group) {
    auto& mine = values[static_cast<std::size_t>(group.rank())];
    mine.assign(static_cast<std::size_t>(kCount), group.rank() == 0 ? 3 : 0);
    if (group.rank() == 0) mine.back() = 7;
    group.broadcast_now(mine.data(), mine.size(), 0);
    group.all_reduce_now(mine.data(), mine.data(), kCount, DType::u8, Reduction::sum);
  });
  for (const auto& mine : values) {
    CHECK(mine.front() == 6);
    CHECK(mine[static_cast<std::size_t>(kCount / 2)] == 6);
    CHECK(mine[static_cast<std::size_t>(kCount - 2)] == 6);
    CHECK(mine.back() == 14);
  }
}

}  // namespace convoy::testing
