// Parcels between devices, with streams that are held up so that a missing wait shows; lanes
// between threads.
#include "comm/parcel_lane.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "comm/thread_communicator.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy {
namespace {

using testing::expect_error;
using Values = std::vector<int>;

/// Holds a stream up until it is opened.
class Gate {
 public:
  explicit Gate(Stream& stream) {
    stream.host_call([open = open_] { open->wait(false); });
  }
  ~Gate() { open(); }
  void open() {
    *open_ = true;
    open_->notify_all();
  }

 private:
  std::shared_ptr<std::atomic<bool>> open_ = std::make_shared<std::atomic<bool>>(false);
};

/// Numbers in the memory of a stream's device.
class Numbers {
 public:
  Numbers(const Values& values, Stream& stream)
      : block_(context(stream.device()).memory().allocate(bytes_of(values), &stream)),
        bytes_(bytes_of(values)) {
    write(values, stream);
  }
  void write(const Values& values, Stream& stream) {
    context(stream.device()).copy_in(stream, block_.data(), values.data(), bytes_);
  }
  Values read(Stream& stream) const {
    Values values(bytes_ / sizeof(int));
    context(stream.device()).copy_out(stream, values.data(), block_.data(), bytes_);
    return values;
  }
  Parcel::Part part() const { return {block_.data(), bytes_}; }
  Parcel::Place place() const { return {block_.data(), bytes_}; }
  void* data() const { return block_.data(); }

 private:
  static std::size_t bytes_of(const Values& values) { return values.size() * sizeof(int); }
  MemoryPool::Block block_;
  std::size_t bytes_;
};

}  // namespace

TEST_CASE("a parcel brings its parts to another stream of the same device, or to another one") {
  const auto [source, target] = GENERATE(values<std::pair<const char*, const char*>>(
      {{"emu:0", "emu:0"}, {"emu:0", "emu:1"}, {"cpu:0", "cpu:1"}, {"ref:0", "ref:0"}}));
  const auto sender = context(source).make_stream();
  const auto receiver = context(target).make_stream();
  Numbers one({1, 2, 3}, *sender), two(Values(1000, 7), *sender);
  const Numbers here({0, 0, 0}, *receiver), there(Values(1000, 0), *receiver);
  Gate gate(*sender);  // the receiver must wait for what the sender has only queued
  Parcel parcel({one.part(), two.part()}, *sender);
  CHECK(parcel.bytes() == 1003 * sizeof(int));
  two.write(Values(1000, 8), *sender);
  parcel.open({here.place(), there.place()}, *receiver);
  gate.open();
  CHECK(here.read(*receiver) == Values{1, 2, 3});
  CHECK(there.read(*receiver) == Values(1000, 7));
}

TEST_CASE("the memory of a parcel is not used again before the receiver has it") {
  const auto [source, target] = GENERATE(
      values<std::pair<const char*, const char*>>({{"emu:0", "emu:1"}, {"cpu:0", "cpu:1"}}));
  const auto sender = context(source).make_stream();
  const auto receiver = context(target).make_stream();
  const Numbers one(Values(5000, 1), *sender);
  const Numbers there(Values(5000, 0), *receiver);
  Gate gate(*receiver);
  Parcel({one.part()}, *sender).open({there.place()}, *receiver);
  for (int i = 0; i < 3; ++i) const Numbers other(Values(5000, 2), *sender);
  sender->synchronize();
  gate.open();
  CHECK(there.read(*receiver) == Values(5000, 1));
}

TEST_CASE("a parcel of nothing needs no stream of its own") {
  const auto stream = context(GENERATE("emu:0", "cpu:0")).make_stream();
  Parcel nothing({}, *stream);
  CHECK(nothing.bytes() == 0);
  nothing.open({}, *stream);
  Parcel empty({{nullptr, 0}}, *stream);
  empty.open({{nullptr, 0}}, *stream);
  stream->synchronize();
}

TEST_CASE("a part of a host's parcel is used where it lies, and counts in no pool") {
  const auto sender = context("cpu:0").make_stream();
  const auto receiver = context("cpu:1").make_stream();
  const Numbers one({1, 2, 3}, *sender), two(Values(5000, 7), *sender);
  const Numbers here(Values(5000, 0), *receiver);
  const std::size_t before = context("cpu:0").memory().statistics().in_use;
  std::shared_ptr<std::byte> part;
  {
    Gate gate(*sender);
    const Parcel parcel({one.part(), two.part()}, *sender);
    CHECK(parcel.part_bytes(0) == 3 * sizeof(int));
    CHECK(parcel.part_bytes(1) == 5000 * sizeof(int));
    part = parcel.take(1, *receiver);
    context("cpu:1").copy(*receiver, here.data(), part.get(), parcel.part_bytes(1));
    gate.open();
  }
  CHECK(context("cpu:0").memory().statistics().in_use == before);
  CHECK(here.read(*receiver) == Values(5000, 7));
  const Numbers other(Values(6000, 8), *sender);  // not in the memory of the part, which is held
  sender->synchronize();
  context("cpu:1").copy(*receiver, here.data(), part.get(), 5000 * sizeof(int));
  CHECK(here.read(*receiver) == Values(5000, 7));
}

TEST_CASE("a lane gives messages in their order, and says when it is full") {
  const auto stream = context("cpu:0").make_stream();
  const auto group = make_thread_communicators(2);
  ParcelLane lane(2);
  const Numbers one({1}, *stream), two({2, 2}, *stream);
  CHECK_FALSE(lane.is_full());
  CHECK(lane.send({.micro_batch = 7}, Parcel({one.part()}, *stream), *group[0]) == 0);
  CHECK(lane.send({.micro_batch = 8}, Parcel({two.part()}, *stream), *group[0]) == 0);
  CHECK(lane.is_full());
  const ParcelMessage first = lane.receive(*group[1]);
  CHECK(first.header.micro_batch == 7);
  CHECK(first.parcel.bytes() == sizeof(int));
  CHECK_FALSE(lane.is_full());
  const ParcelMessage second = lane.receive(*group[1]);
  CHECK(second.header.micro_batch == 8);
  CHECK(second.parcel.bytes() == 2 * sizeof(int));
  CHECK(first.sent_at <= second.sent_at);
}

TEST_CASE("both ends of a lane wait for each other") {
  constexpr int kMessages = 100;
  const auto group = make_thread_communicators(2);
  ParcelLane lane(1);
  std::thread sender([&] {
    for (int k = 0; k < kMessages; ++k) lane.send({.micro_batch = k}, {}, *group[0]);
  });
  for (int k = 0; k < kMessages; ++k) CHECK(lane.receive(*group[1]).header.micro_batch == k);
  sender.join();
}

TEST_CASE("a wait in a lane is on the board, and ends with the group") {
  const bool sends = GENERATE(true, false);
  CAPTURE(sends);
  ProgressBoard board;
  const auto group = make_thread_communicators(2, {.boards = {&board, nullptr}});
  ParcelLane lane(1);
  if (sends) lane.send({}, {}, *group[0]);
  std::thread other([&] {
    while (board.read().activity != Activity::waiting) std::this_thread::yield();
    group[1]->abort(Error(ErrorKind::communication, "the other one is gone"));
  });
  expect_error(ErrorKind::communication, {"the other one is gone"}, [&] {
    if (sends) {
      lane.send({}, {}, *group[0]);
    } else {
      lane.receive(*group[0]);
    }
  });
  other.join();
}

TEST_CASE("there are lanes between devices of one kind and of this process alone") {
  ParcelLanes lanes(
      4, {Device("emu:0"), Device("emu:0"), Device("emu:1"), Device("cpu:0"), Device("cpu:1")}, 2);
  const auto lane = lanes.between(4, 5, 9);
  REQUIRE(lane);
  CHECK(lanes.between(4, 5, 9) == lane);
  CHECK(lanes.between(5, 4, 9) != lane);
  CHECK(lanes.between(4, 5, 8) != lane);
  CHECK(lanes.between(4, 6, 9));
  CHECK(lanes.between(7, 8, 9));
  CHECK_FALSE(lanes.between(4, 7, 9));
  CHECK_FALSE(lanes.between(3, 4, 9));
  CHECK_FALSE(lanes.between(4, 9, 9));
  expect_error(ErrorKind::usage, {"cpu:0: no way to the memory of emu:0"},
               [] { context("cpu:0").reach("emu:0"); });
  expect_error(ErrorKind::usage, {"emu:0: no way to the memory of cpu:0"},
               [] { context("emu:0").reach("cpu:0"); });
}

}  // namespace convoy
