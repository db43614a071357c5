#include "kernels/emulator/checks/order.h"

#include <numeric>
#include <vector>

#include "kernels/emulator/checks/shadow.h"
#include "tests/support/catch.h"

namespace convoy::emulator::checks {
namespace {

BlockOrder block_of(int threads, std::uint32_t rank = 0) {
  BlockOrder order;
  order.begin(10, 4, rank, threads);
  return order;
}

std::vector<int> range(int first, int count) {
  std::vector<int> result(count);
  std::iota(result.begin(), result.end(), first);
  return result;
}

TEST_CASE("threads of a block are ordered by its barrier alone") {
  BlockOrder order = block_of(96);
  const Stamp early = order.now(70);
  CHECK(order.is_before(early, 70));
  CHECK_FALSE(order.is_before(early, 71));
  order.block_barrier();
  CHECK(order.is_before(early, 71));
  CHECK(order.is_before(early, 0));
  CHECK_FALSE(order.is_before(order.now(70), 71));
}

TEST_CASE("a barrier of a warp orders its lanes and no others") {
  BlockOrder order = block_of(48);
  const Stamp first = order.now(3), second = order.now(40);
  order.group_barrier(range(0, 32));
  CHECK(order.is_before(first, 31));
  CHECK_FALSE(order.is_before(first, 32));
  CHECK_FALSE(order.is_before(second, 41));
  order.group_barrier(range(32, 16));  // the last warp has 16 lanes
  CHECK(order.is_before(second, 47));
  CHECK_FALSE(order.is_before(second, 3));
}

TEST_CASE("what is known goes on from meeting to meeting") {
  BlockOrder order = block_of(96);
  const Stamp lane = order.now(5);
  order.group_barrier(range(0, 32));
  const std::vector<int> pair = {0, 32};  // one lane of each of two warps
  order.group_barrier(pair);
  CHECK(order.is_before(lane, 32));
  CHECK_FALSE(order.is_before(lane, 33));
  order.group_barrier(range(32, 32));
  CHECK(order.is_before(lane, 33));
  CHECK_FALSE(order.is_before(lane, 64));
  CHECK_FALSE(order.is_before(order.now(5), 33));
}

TEST_CASE("release and acquire order one thread after another, over blocks too") {
  BlockOrder here = block_of(64, 0), there = block_of(64, 1);
  const Stamp before = here.now(9), other = here.now(8);
  SECTION("without a barrier only what the thread itself did") {
    const Knowledge passed = here.release(9);
    const Stamp after = here.now(9);
    CHECK_FALSE(there.is_before(before, 1));
    there.acquire(1, passed);
    CHECK(there.is_before(before, 1));
    CHECK_FALSE(there.is_before(before, 2));
    CHECK_FALSE(there.is_before(other, 1));
    CHECK_FALSE(there.is_before(after, 1));
    there.block_barrier();
    CHECK(there.is_before(before, 2));
  }
  SECTION("after a barrier what the block did") {
    here.block_barrier();
    there.acquire(1, here.release(0));
    CHECK(there.is_before(other, 1));
  }
  SECTION("inside the block") {
    here.acquire(40, here.release(9));
    CHECK(here.is_before(before, 40));
    CHECK_FALSE(here.is_before(before, 41));
  }
  SECTION("through a third block") {
    there.acquire(1, here.release(9));
    BlockOrder third = block_of(64, 2);
    third.acquire(0, there.release(1));
    CHECK(third.is_before(before, 0));
  }
}

TEST_CASE("stamps of other grids and of nobody do not count") {
  const BlockOrder order = block_of(32);
  CHECK(order.is_of_this_grid(Stamp(13, 0, 1)));
  CHECK_FALSE(order.is_of_this_grid(Stamp(14, 0, 1)));
  CHECK_FALSE(order.is_of_this_grid(Stamp(9, 0, 1)));
  CHECK_FALSE(order.is_of_this_grid(Stamp()));
}

// One byte, touched by threads of one block.
class Byte {
 public:
  explicit Byte(BlockOrder& order) : order_(order) {}
  bool races(int thread, AccessKind kind, bool is_atomic = false) {
    const Access access{order_.now(thread), 0, is_atomic};
    return Cells(&word_, bytes_).note(1, 1, access, kind, order_).has_value();
  }

 private:
  BlockOrder& order_;
  WordCell word_;
  Cell bytes_[4];
};

TEST_CASE("a writer races with each unordered reader, however many there were") {
  BlockOrder order = block_of(128);
  Byte byte(order);
  for (int reader : {0, 1, 2, 40, 3, 70, 4}) CHECK_FALSE(byte.races(reader, AccessKind::read));
  SECTION("a writer among the readers") {
    CHECK(byte.races(0, AccessKind::write));
  }
  SECTION("a writer of the same warp, ordered after its lanes") {
    order.group_barrier(range(0, 32));
    CHECK(byte.races(0, AccessKind::write));  // against thread 40 or 70
  }
  SECTION("after a barrier") {
    order.block_barrier();
    CHECK_FALSE(byte.races(0, AccessKind::write));
    CHECK(byte.races(1, AccessKind::read));
  }
}

TEST_CASE("atomics race with plain accesses and not with each other") {
  BlockOrder order = block_of(64);
  Byte byte(order);
  CHECK_FALSE(byte.races(0, AccessKind::atomic, true));
  CHECK_FALSE(byte.races(1, AccessKind::atomic, true));
  CHECK(byte.races(2, AccessKind::read));
  order.block_barrier();
  CHECK_FALSE(byte.races(2, AccessKind::write));
  CHECK(byte.races(3, AccessKind::atomic, true));
}

TEST_CASE("bytes of one access may have different pasts") {
  BlockOrder order = block_of(64);
  std::vector<WordCell> words(4);
  std::vector<Cell> bytes(16);
  const Cells cells(words.data(), bytes.data());
  const Access early{order.now(5), 7, 0};
  CHECK_FALSE(cells.note(9, 1, early, AccessKind::write, order));
  CHECK(cells.of_byte(8).write.code == 0);
  CHECK(cells.of_byte(9).write.code == 7);
  const auto conflict = cells.note(0, 16, {order.now(6), 8, 0}, AccessKind::read, order);
  REQUIRE(conflict);
  CHECK(conflict->other.code == 7);
  CHECK(conflict->kind == AccessKind::write);
  for (int i : {0, 8, 9, 15}) CHECK(cells.of_byte(i).read[0].code == 8);
  CHECK(words[2].is_split);
  CHECK_FALSE(words[1].is_split);
}

TEST_CASE("bytes that are written together have one past again") {
  BlockOrder order = block_of(64);
  std::vector<WordCell> words(4);
  std::vector<Cell> bytes(16);
  const Cells cells(words.data(), bytes.data());
  // Bytes 3 to 6: of two words the last and the first ones.
  CHECK_FALSE(cells.note(3, 4, {order.now(1), 1, 0}, AccessKind::write, order));
  for (int i = 0; i < 16; ++i) CHECK(cells.of_byte(i).write.code == (i >= 3 && i < 7 ? 1u : 0u));
  CHECK((words[0].is_split && words[1].is_split));
  CHECK_FALSE(cells.note(0, 3, {order.now(2), 2, 0}, AccessKind::write, order));
  order.block_barrier();
  CHECK_FALSE(cells.note(0, 8, {order.now(3), 3, 0}, AccessKind::write, order));
  CHECK_FALSE((words[0].is_split || words[1].is_split));
  CHECK(cells.note(7, 1, {order.now(4), 4, 0}, AccessKind::read, order)->other.code == 3);
  CHECK(words[1].is_split);
  CHECK(cells.note(4, 4, {order.now(3), 5, 0}, AccessKind::write, order)->other.code == 4);
}

}  // namespace
}  // namespace convoy::emulator::checks
