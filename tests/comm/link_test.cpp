#include "comm/link.h"

#include <cstring>
#include <thread>

#include "comm/clock.h"
#include "tests/comm/faulty_communicator.h"
#include "tests/comm/thread_group.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy {
namespace {

using testing::expect_error;
using testing::FaultyCommunicator;
using testing::kNothing;
using testing::Notes;
using testing::run_ranks;

constexpr int kTag = 3;

LinkHeader header_of(std::int64_t micro_batch) {
  LinkHeader header;
  header.batch = 7;
  header.micro_batch = micro_batch;
  return header;
}

/// `bytes` bytes that depend on `number` and on the place.
Payload payload_of(std::size_t bytes, int number) {
  Payload payload(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    payload.data()[i] = static_cast<std::byte>(i * 31 + static_cast<std::size_t>(number) * 7);
  }
  return payload;
}

bool same(const Payload& a, const Payload& b) {
  return a.bytes() == b.bytes() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

Error test_abort() {
  return {ErrorKind::numerics, "the loss is not a number"};
}

/// Two ranks of a thread group, whose first one sends what `fault` makes of its messages.
struct FaultyPair {
  explicit FaultyPair(FaultyCommunicator::Fault fault)
      : sending(*group[0], std::move(fault)),
        sender(sending, 1, kTag),
        receiver(*group[1], 0, kTag) {}
  std::vector<std::unique_ptr<HostCommunicator>> group = make_thread_communicators(2);
  FaultyCommunicator sending;
  LinkSender sender;
  LinkReceiver receiver;
};

}  // namespace

TEST_CASE("a link keeps order, headers and payloads, empty ones too") {
  auto group = make_thread_communicators(2);
  LinkSender sender(*group[0], 1, kTag);
  LinkReceiver receiver(*group[1], 0, kTag);
  const std::vector<std::size_t> sizes = {0, 1, 5000, 0, 700001, 3};
  std::thread sending([&] {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const int number = static_cast<int>(i);
      sender.send(header_of(number), payload_of(sizes[i], number));
    }
    sender.flush();
  });
  int right = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const int number = static_cast<int>(i);
    const LinkMessage message = receiver.receive();
    right +=
        message.header == header_of(number) && same(message.payload, payload_of(sizes[i], number));
  }
  sending.join();
  CHECK(right == static_cast<int>(sizes.size()));
  CHECK_FALSE(receiver.ready());
}

TEST_CASE("a link holds the slots of both ends and no more, and no send waits before that") {
  ThreadOptions options;
  options.ring = {2, 4096};  // a message of the test does not fit into the channel
  auto group = make_thread_communicators(2, options);
  LinkSender sender(*group[0], 1, kTag, {.slots = 3});
  LinkReceiver receiver(*group[1], 0, kTag, {.slots = 2});
  constexpr std::size_t kBytes = 100000;
  // Two arrive and wait for the receiver, three more lie with the sender.
  double waited = 0;
  for (int i = 0; i < 2; ++i) sender.send(header_of(i), payload_of(kBytes, i));
  sender.flush();
  for (int i = 2; i < 5; ++i) waited += sender.send(header_of(i), payload_of(kBytes, i));
  CHECK(waited == 0);
  CHECK(sender.would_block());
  CHECK_FALSE(sender.flush_for(0.01));
  std::atomic<bool> sent{false};
  std::thread sixth([&] {
    waited = sender.send(header_of(5), payload_of(kBytes, 5));
    sent = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(sent);
  int right = 0;
  for (int i = 0; i < 6; ++i) right += same(receiver.receive().payload, payload_of(kBytes, i));
  sixth.join();
  CHECK(right == 6);
  CHECK(waited > 0);
  CHECK_FALSE(sender.would_block());
}

TEST_CASE("both directions at once, with messages of more than a channel holds") {
  Notes notes;
  run_ranks(4, {}, [&](HostCommunicator& rank) {
    const int after = (rank.rank() + 1) % 4;
    const int before = (rank.rank() + 3) % 4;
    LinkSender down(rank, after, 0), up(rank, before, 1);
    LinkReceiver from_before(rank, before, 0), from_after(rank, after, 1);
    constexpr std::size_t kBytes = 1500000;
    for (int i = 0; i < 4; ++i) {
      down.send(header_of(i), payload_of(kBytes, i + rank.rank()));
      up.send(header_of(i), payload_of(kBytes, i + rank.rank() + 100));
      notes.expect(same(from_before.receive().payload, payload_of(kBytes, i + before)), "down");
      notes.expect(same(from_after.receive().payload, payload_of(kBytes, i + after + 100)), "up");
    }
    down.flush();
    up.flush();
  });
  CHECK(notes.text() == kNothing);
}

TEST_CASE("a message says when it was sent, by the receiver's clock, and when it was here") {
  auto group = make_thread_communicators(2);
  LinkSender sender(*group[0], 1, kTag);
  LinkReceiver receiver(*group[1], 0, kTag, {.clock_offset = 100});
  const double before = steady_now();
  sender.send({}, payload_of(1000, 0));
  const LinkMessage message = receiver.receive();
  CHECK(message.sent_at + 100 >= before - 1e-6);
  CHECK(message.arrived_at > message.sent_at + 100);
  CHECK(message.arrived_at <= steady_now());
}

TEST_CASE("a link names itself and both values when a message is wrong") {
  int number = 0;
  SECTION("a byte of the payload") {
    FaultyPair pair([&](auto& message) {
      if (message.size() == 1000) message[500] ^= std::byte{1};
      return true;
    });
    pair.sender.send({}, payload_of(1000, 0));
    expect_error(ErrorKind::communication,
                 {"link from rank 0 to rank 1 (tag 3)", "checksum of the payload is", "expected"},
                 [&] { pair.receiver.receive(); });
  }
  SECTION("a byte of the header") {
    FaultyPair pair([](auto& message) {
      message[60] ^= std::byte{1};
      return true;
    });
    pair.sender.send({}, {});
    expect_error(ErrorKind::communication, {"rank 0 to rank 1", "checksum of the header is"},
                 [&] { pair.receiver.receive(); });
  }
  SECTION("a lost message, after those before it") {
    FaultyPair pair([&](auto&) { return number++ != 1; });
    for (int i = 0; i < 3; ++i) pair.sender.send(header_of(i), {});
    CHECK(pair.receiver.receive().header == header_of(0));
    for (int i = 0; i < 2; ++i) {
      expect_error(ErrorKind::communication, {"rank 0 to rank 1", "sequence number 2, expected 1"},
                   [&] { pair.receiver.receive(); });
    }
  }
  SECTION("the length") {
    FaultyPair pair([](auto& message) {
      if (message.size() == 1000) message.resize(999);
      return true;
    });
    pair.sender.send({}, payload_of(1000, 0));
    expect_error(ErrorKind::communication,
                 {"message of 999 bytes from rank 0 with tag 3, 1000 expected"},
                 [&] { pair.receiver.receive(); });
  }
}

TEST_CASE("what a sender's thread throws comes with the next call") {
  FaultyPair pair([](auto&) -> bool { CONVOY_FAIL(communication, "the cable is out"); });
  pair.sender.send({}, {});
  expect_error(ErrorKind::communication, {"the cable is out"}, [&] { pair.sender.flush(); });
  expect_error(ErrorKind::communication, {"the cable is out"}, [&] { pair.sender.send({}, {}); });
}

TEST_CASE("an abort ends the waits of both ends") {
  auto group = make_thread_communicators(2);
  LinkSender sender(*group[0], 1, kTag, {.slots = 1});
  LinkReceiver receiver(*group[1], 0, 4);
  sender.send({}, payload_of(3000000, 0));  // nobody takes it
  std::thread aborting([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    group[0]->abort(test_abort());
  });
  expect_error(ErrorKind::numerics, {test_abort().text()}, [&] { sender.send({}, {}); });
  expect_error(ErrorKind::numerics, {test_abort().text()}, [&] { receiver.receive(); });
  aborting.join();
}

TEST_CASE("a link ends with messages outstanding, whatever the other side does") {
  auto group = make_thread_communicators(2);
  {
    LinkReceiver nobody_sends(*group[0], 1, kTag);
    LinkSender nobody_takes(*group[0], 1, kTag);
    for (int i = 0; i < 2; ++i) nobody_takes.send({}, payload_of(3000000, i));
    LinkSender unread(*group[0], 1, 8);
    LinkReceiver never_asked(*group[1], 0, 8);
    unread.send({}, payload_of(1000, 0));
    unread.flush();
  }
  // The receiver's thread has taken nothing off the tag that it waited on.
  LinkSender sender(*group[1], 0, kTag);
  LinkReceiver receiver(*group[0], 1, kTag);
  sender.send(header_of(1), {});
  CHECK(receiver.receive().header == header_of(1));
  CHECK_FALSE(receiver.receive_for(0.01));
}

TEST_CASE("the worker counts as waiting in its own calls alone") {
  std::vector<ProgressBoard> boards(2);
  ThreadOptions options;
  options.boards = {&boards[0], &boards[1]};
  auto group = make_thread_communicators(2, options);
  for (ProgressBoard& board : boards) board.enter(Activity::computing);
  LinkReceiver receiver(*group[1], 0, kTag);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(boards[1].read().activity == Activity::computing);
  std::thread waiting([&] { receiver.receive(); });
  while (boards[1].read().activity != Activity::waiting) std::this_thread::yield();
  CHECK(boards[1].read().wait_in == WaitIn::message);
  LinkSender sender(*group[0], 1, kTag);
  const auto beats = boards[1].read().beats;
  sender.send({}, payload_of(1000, 0));
  waiting.join();
  CHECK(boards[1].read().activity == Activity::computing);
  CHECK(boards[1].read().beats > beats);
  CHECK(boards[0].read().activity == Activity::computing);
}

TEST_CASE("a link says what it cannot be made of") {
  auto group = make_thread_communicators(2);
  expect_error(ErrorKind::usage, {"link: 0 slots, expected at least 1"},
               [&] { LinkSender(*group[0], 1, kTag, {.slots = 0}); });
  expect_error(ErrorKind::usage, {"link: peer is rank 0, this rank itself"},
               [&] { LinkReceiver(*group[0], 0, kTag); });
}

}  // namespace convoy
