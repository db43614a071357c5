#include "comm/progress.h"

#include "tests/support/catch.h"

namespace convoy {

TEST_CASE("a wait is counted as a collective and leads back to what was done before") {
  ProgressBoard board;
  board.begin_step(7);
  {
    const WaitScope wait(&board);
    CHECK(board.read().activity == Activity::waiting);
    CHECK(board.read().collective == 1);
  }
  const Progress after = board.read();
  CHECK(after.activity == Activity::computing);
  CHECK(after.step == 7);
  CHECK(after.collective == 1);
}

TEST_CASE("beats rise with whatever gets done") {
  ProgressBoard board;
  const std::uint64_t before = board.read().beats;
  board.beat();
  CHECK(board.read().beats == before + 1);
}

TEST_CASE("a worker whose streams wait side by side waits until the last of them is through") {
  ProgressBoard board;
  board.enter(Activity::computing);
  board.begin_wait(WaitIn::reduce);
  board.begin_wait(WaitIn::gather);
  board.end_wait();
  CHECK(board.read().activity == Activity::waiting);
  board.end_wait();
  CHECK(board.read().activity == Activity::computing);
}

}  // namespace convoy
