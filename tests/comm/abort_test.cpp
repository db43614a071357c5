#include "tests/comm/thread_group.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy {
namespace {

using testing::check_error;

const char* const kWhy = "rank 1 is gone";

/// Runs `blocked` on rank 0 of 2, whose peer never comes, aborts the group once it waits, and
/// checks its error.
void abort_while(const std::function<void(HostCommunicator&)>& blocked) {
  std::vector<ProgressBoard> boards(2);
  ThreadOptions options;
  options.boards = {&boards[0], &boards[1]};
  auto group = make_thread_communicators(2, options);
  std::thread other([&] {
    while (boards[0].read().activity != Activity::waiting) std::this_thread::yield();
    group[1]->abort(Error(ErrorKind::communication, kWhy));
  });
  check_error([&] { blocked(*group[0]); }, ErrorKind::communication, kWhy);
  other.join();
  check_error([&] { group[0]->barrier(); }, ErrorKind::communication, kWhy);
  char byte = 0;
  check_error([&] { group[1]->send_now(&byte, 1, 0, 0); }, ErrorKind::communication, kWhy);
}

}  // namespace

TEST_CASE("abort from another thread wakes whoever waits, with its error; later calls throw too") {
  std::vector<float> values(300000);
  const auto bytes = values.size() * sizeof(float);
  const auto all_reduce = [&](std::int64_t count) {
    return [&values, count](HostCommunicator& rank) {
      rank.all_reduce_now(values.data(), values.data(), count, DType::f32, Reduction::sum);
    };
  };
  SECTION("all_reduce") {
    abort_while(all_reduce(300000));
  }
  SECTION("all_reduce in one hop") {
    abort_while(all_reduce(3));
  }
  SECTION("barrier") {
    abort_while([](HostCommunicator& rank) { rank.barrier(); });
  }
  SECTION("broadcast") {
    abort_while([&](HostCommunicator& rank) { rank.broadcast_now(values.data(), bytes, 1); });
  }
  SECTION("send to a full channel") {
    abort_while([&](HostCommunicator& rank) { rank.send_now(values.data(), bytes, 1, 0); });
  }
  SECTION("receive") {
    abort_while([&](HostCommunicator& rank) { rank.receive_now(values.data(), bytes, 1, 0); });
  }
  SECTION("split") {
    abort_while([](HostCommunicator& rank) { rank.split_host(0, 0); });
  }
}

TEST_CASE("the first abort counts, and reaches groups that were split off") {
  auto group = make_thread_communicators(2);
  std::unique_ptr<HostCommunicator> part;
  testing::run_ranks(group, [&](HostCommunicator& rank) {
    auto mine = rank.split_host(0, 0);
    if (rank.rank() == 0) part = std::move(mine);
  });
  group[0]->abort(Error(ErrorKind::numerics, "first"));
  group[1]->abort(Error(ErrorKind::data, "second"));
  check_error([&] { part->barrier(); }, ErrorKind::numerics, "first");
}

}  // namespace convoy
