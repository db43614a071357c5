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

TEST_CASE("a board knows the instruction until the next activity") {
  ProgressBoard board;
  board.begin_step(1);
  CHECK_FALSE(board.read().at);
  const std::uint64_t before = board.read().beats;
  board.begin_instruction({{'R', 'A'}, 1, 3});
  CHECK(board.read().beats > before);
  {
    const WaitScope wait(&board, WaitIn::message);
    CHECK(to_text(board.read().at) == "RA 1.3");
  }
  CHECK(board.read().activity == Activity::computing);
  board.begin_instruction({{'F'}, 1, 3});
  CHECK(to_text(board.read().at) == "F 1.3");
  board.enter(Activity::saving);
  CHECK_FALSE(board.read().at);
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

TEST_CASE("the time of a step is a running mean over some seconds") {
  ProgressBoard board;
  board.end_step(0.01);
  CHECK(board.read().step_seconds == 0.01);
  board.end_step(0.11);  // one slow step of many
  CHECK(board.read().step_seconds < 0.011);
  for (int i = 0; i < 1000; ++i) board.end_step(0.04);
  CHECK(board.read().step_seconds == Approx(0.04));
  ProgressBoard slow;
  slow.end_step(10);
  slow.end_step(20);
  CHECK(slow.read().step_seconds == 15);
}

}  // namespace convoy
