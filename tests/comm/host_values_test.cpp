#include "comm/host_values.h"

#include "tests/comm/thread_group.h"
#include "tests/support/catch.h"

namespace convoy {

TEST_CASE("values and texts of all are agreed on") {
  testing::Notes notes;
  testing::run_ranks(3, {}, [&](HostCommunicator& rank) {
    const int r = rank.rank();
    const std::int64_t large = std::int64_t{1} << 60;
    notes.expect(sum_over(rank, large + r) == 3 * large + 3, "sum of integers");
    // In rank order 1e100 - 1e100 + 1.
    const double parts[] = {1e100, -1e100, 1};
    notes.expect(sum_over(rank, parts[r]) == 1, "sum of doubles");
    notes.expect(max_over(rank, std::int64_t{-5 - r}) == -5, "maximum");
    notes.expect(any_of(rank, r == 2) && !any_of(rank, false), "any");
    notes.expect(broadcast_text(rank, std::string(r, 'x'), 2) == "xx", "broadcast");
    notes.expect(broadcast_text(rank, "", 0).empty(), "broadcast of nothing");
    const std::vector<std::string> texts = gather_texts(rank, std::string(r * 1000, 'a'));
    notes.expect(
        texts == std::vector<std::string>{"", std::string(1000, 'a'), std::string(2000, 'a')},
        "texts");
  });
  CHECK(notes.text() == testing::kNothing);
}

}  // namespace convoy
