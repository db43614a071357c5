#include "comm/channel_communicator.h"

#include "comm/thread_fabric.h"
#include "tests/comm/thread_group.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy {
namespace {

using testing::check_error;
using testing::expect_error;
using testing::kNothing;
using testing::Notes;
using testing::run_ranks;

void send(HostCommunicator& rank, const std::vector<int>& values, int peer, int tag) {
  rank.send_now(values.data(), values.size() * sizeof(int), peer, tag);
}

std::vector<int> receive(HostCommunicator& rank, std::size_t count, int peer, int tag) {
  std::vector<int> values(count, -1);
  rank.receive_now(values.data(), count * sizeof(int), peer, tag);
  return values;
}

int sum(HostCommunicator& group, int value) {
  group.all_reduce_now(&value, &value, 1, DType::i32, Reduction::sum);
  return value;
}

}  // namespace

TEST_CASE("messages of a tag arrive in order, those of other tags do not wait for them") {
  ThreadOptions options;
  options.ring = {2, 256};
  const std::vector<int> late(5000, 9);  // more pieces than a channel holds
  Notes notes;
  run_ranks(2, options, [&](HostCommunicator& rank) {
    if (rank.rank() == 0) {
      send(rank, {1, 2}, 1, 7);
      send(rank, {}, 1, 7);
      send(rank, {3}, 1, 0);
      send(rank, {4}, 1, Fabric::kLastTag);
      send(rank, late, 1, 7);
    } else {
      notes.expect(receive(rank, 1, 0, Fabric::kLastTag) == std::vector<int>{4}, "last tag");
      notes.expect(receive(rank, 1, 0, 0) == std::vector<int>{3}, "tag 0");
      notes.expect(receive(rank, 2, 0, 7) == std::vector<int>{1, 2}, "tag 7, first");
      receive(rank, 0, 0, 7);
      notes.expect(receive(rank, late.size(), 0, 7) == late, "tag 7, long");
    }
  });
  CHECK(notes.text() == kNothing);
}

TEST_CASE("a message of another size names both, and the next one arrives") {
  auto group = make_thread_communicators(2);
  send(*group[0], {1, 2, 3}, 1, 5);
  send(*group[0], {4}, 1, 5);
  check_error([&] { receive(*group[1], 2, 0, 5); }, ErrorKind::communication,
              "receive: message of 12 bytes from rank 0 with tag 5, 8 expected");
  CHECK(receive(*group[1], 1, 0, 5) == std::vector<int>{4});
}

TEST_CASE("ranks that make different calls are told, all of them") {
  auto group = make_thread_communicators(2);
  std::vector<std::string> texts(2);
  run_ranks(group, [&](HostCommunicator& rank) {
    std::vector<float> values(100 + rank.rank());
    try {
      rank.all_reduce_now(values.data(), values.data(), values.size(), DType::f32, Reduction::sum);
    } catch (const Error& error) {
      texts[rank.rank()] = error.text();
    }
  });
  // Whoever sees it first aborts the group; the other may have seen it as well by then.
  const Error first = testing::error_of([&] { group[0]->barrier(); });
  CHECK(first.kind() == ErrorKind::communication);
  CHECK(first.text().find("all_reduce: piece of 40") == 0);
  CHECK_FALSE(texts[0].empty());
  CHECK_FALSE(texts[1].empty());
}

TEST_CASE("a split groups by color and orders by key, then by rank") {
  Notes notes;
  run_ranks(5, {}, [&](HostCommunicator& rank) {
    const int r = rank.rank();
    // 0, 2, 4 in reverse; 1, 3 with equal keys.
    auto part = rank.split_host(r % 2, r % 2 ? 0 : -r);
    notes.expect(part->size() == (r % 2 ? 2 : 3), "size");
    notes.expect(part->rank() == (r % 2 ? r / 2 : 2 - r / 2), "rank");
    notes.expect(sum(*part, r) == (r % 2 ? 4 : 6), "sum over the part");
    notes.expect(sum(rank, 1) == 5, "sum over all");
    // Again, of the part: 0 and 4 stay, 2 leaves; of 1 and 3 each alone.
    auto less = part->split_host(r == 2 ? -1 : r % 2 ? r : 0, 0);
    notes.expect((less == nullptr) == (r == 2), "a negative color gives none");
    if (less) notes.expect(sum(*less, r) == (r % 2 ? r : 4), "sum over the part's part");
  });
  CHECK(notes.text() == kNothing);
}

TEST_CASE("messages of a split group do not mix with those of the whole") {
  Notes notes;
  run_ranks(2, {}, [&](HostCommunicator& rank) {
    auto same = rank.split_host(0, 0);
    auto again = rank.split_host(0, 0);
    if (rank.rank() == 0) {
      send(rank, {1}, 1, 3);
      send(*same, {2}, 1, 3);
      send(*again, {3}, 1, 3);
    } else {
      notes.expect(receive(*again, 1, 0, 3) == std::vector<int>{3}, "third");
      notes.expect(receive(*same, 1, 0, 3) == std::vector<int>{2}, "second");
      notes.expect(receive(rank, 1, 0, 3) == std::vector<int>{1}, "first");
    }
  });
  CHECK(notes.text() == kNothing);
}

TEST_CASE("the board counts collectives and messages, and tells who waits") {
  std::vector<ProgressBoard> boards(2);
  ThreadOptions options;
  options.boards = {&boards[0], &boards[1]};
  auto group = make_thread_communicators(2, options);
  boards[0].enter(Activity::computing);
  std::thread waiting([&] {
    group[0]->barrier();
    receive(*group[0], 1, 1, 0);
  });
  while (boards[0].read().activity != Activity::waiting) std::this_thread::yield();
  CHECK(boards[0].read().collective == 1);
  const std::uint64_t beats = boards[0].read().beats;
  group[1]->barrier();
  send(*group[1], {1}, 0, 0);
  waiting.join();
  CHECK(boards[0].read().collective == 2);
  CHECK(boards[0].read().activity == Activity::computing);
  CHECK(boards[0].read().beats > beats);
  CHECK(boards[1].read().collective == 2);
}

TEST_CASE("two collectives at once on one communicator are refused") {
  std::vector<ProgressBoard> boards(2);
  ThreadOptions options;
  options.boards = {&boards[0], &boards[1]};
  auto group = make_thread_communicators(2, options);
  std::thread first([&] { group[0]->barrier(); });
  while (boards[0].read().activity != Activity::waiting) std::this_thread::yield();
  expect_error(ErrorKind::usage, {"barrier: another collective", "split()"},
               [&] { group[0]->barrier(); });
  group[1]->barrier();
  first.join();
}

TEST_CASE("what cannot be moved is refused with the values") {
  auto group = make_thread_communicators(2);
  HostCommunicator& rank = *group[1];
  float values[4] = {};
  const auto usage = [](const std::string& text, const std::function<void()>& call) {
    check_error(call, ErrorKind::usage, text);
  };
  usage("all_reduce: count is -1, expected at least 0",
        [&] { rank.all_reduce_now(values, values, -1, DType::f32, Reduction::sum); });
  usage("all_reduce: the buffer of 4 values is null",
        [&] { rank.all_reduce_now(values, nullptr, 4, DType::f32, Reduction::sum); });
  usage("all_reduce: mean of i32, expected a floating type",
        [&] { rank.all_reduce_now(values, values, 4, DType::i32, Reduction::mean); });
  usage("all_reduce: input and output overlap by part, expected the same buffer or another",
        [&] { rank.all_reduce_now(values, values + 1, 3, DType::f32, Reduction::sum); });
  usage(
      "reduce_scatter: output is the start of the input, expected this rank's chunk of it or "
      "another buffer",
      [&] { rank.reduce_scatter_now(values, values, 4, DType::f32, Reduction::sum); });
  usage("broadcast: root is rank 2, expected 0 to 1", [&] { rank.broadcast_now(values, 4, 2); });
  usage("send: peer is rank -1, expected 0 to 1", [&] { rank.send_now(values, 4, -1, 0); });
  usage("receive: peer is rank 1, this rank itself", [&] { rank.receive_now(values, 4, 1, 0); });
  usage("send: tag is 65536, expected 0 to 65535", [&] { rank.send_now(values, 4, 0, 65536); });
  usage("thread fabric: 0 workers, expected at least 1", [] { make_thread_communicators(0); });
  usage("thread communicators: 1 progress boards for 2 workers",
        [] { make_thread_communicators(2, {.order = {}, .boards = {nullptr}, .ring = {}}); });
}

}  // namespace convoy
