// Parcels between emulated GPUs, with streams that are held up so that a missing wait shows.
#include "comm/device_lane.h"

#include <atomic>
#include <memory>
#include <vector>

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
  DeviceParcel::Part part() const { return {block_.data(), bytes_}; }
  DeviceParcel::Place place() const { return {block_.data(), bytes_}; }
  void* data() const { return block_.data(); }

 private:
  static std::size_t bytes_of(const Values& values) { return values.size() * sizeof(int); }
  MemoryPool::Block block_;
  std::size_t bytes_;
};

}  // namespace

TEST_CASE("a parcel brings its parts to another stream of the same GPU, or to another GPU") {
  const Device target = GENERATE(Device("emu:0"), Device("emu:1"));
  const auto sender = context("emu:0").make_stream();
  const auto receiver = context(target).make_stream();
  Numbers one({1, 2, 3}, *sender), two(Values(1000, 7), *sender);
  const Numbers here({0, 0, 0}, *receiver), there(Values(1000, 0), *receiver);
  Gate gate(*sender);  // the receiver must wait for what the sender has only queued
  DeviceParcel parcel({one.part(), two.part()}, *sender);
  CHECK(parcel.bytes() == 1003 * sizeof(int));
  two.write(Values(1000, 8), *sender);
  parcel.open({here.place(), there.place()}, *receiver);
  gate.open();
  CHECK(here.read(*receiver) == Values{1, 2, 3});
  CHECK(there.read(*receiver) == Values(1000, 7));
}

TEST_CASE("the memory of a parcel is not used again before the receiver has it") {
  const auto sender = context("emu:0").make_stream();
  const auto receiver = context("emu:1").make_stream();
  const Numbers one(Values(5000, 1), *sender);
  const Numbers there(Values(5000, 0), *receiver);
  Gate gate(*receiver);
  DeviceParcel({one.part()}, *sender).open({there.place()}, *receiver);
  for (int i = 0; i < 3; ++i) const Numbers other(Values(5000, 2), *sender);
  sender->synchronize();
  gate.open();
  CHECK(there.read(*receiver) == Values(5000, 1));
}

TEST_CASE("a parcel of nothing needs no stream of its own") {
  const auto stream = context("emu:0").make_stream();
  DeviceParcel nothing({}, *stream);
  CHECK(nothing.bytes() == 0);
  nothing.open({}, *stream);
  DeviceParcel empty({{nullptr, 0}}, *stream);
  empty.open({{nullptr, 0}}, *stream);
  stream->synchronize();
}

TEST_CASE("a lane gives parcels in their order") {
  const auto stream = context("emu:0").make_stream();
  DeviceLane lane;
  const Numbers one({1}, *stream), two({2, 2}, *stream);
  lane.put(DeviceParcel({one.part()}, *stream));
  lane.put(DeviceParcel({two.part()}, *stream));
  CHECK(lane.take().bytes() == sizeof(int));
  CHECK(lane.take().bytes() == 2 * sizeof(int));
  expect_error(ErrorKind::internal, {"no parcel is there"}, [&] { lane.take(); });
}

TEST_CASE("there are lanes between GPUs of one kind and of this process alone") {
  DeviceLanes lanes(4, {Device("emu:0"), Device("emu:0"), Device("emu:1"), Device("cpu:0")});
  const auto lane = lanes.between(4, 5, 9);
  REQUIRE(lane);
  CHECK(lanes.between(4, 5, 9) == lane);
  CHECK(lanes.between(5, 4, 9) != lane);
  CHECK(lanes.between(4, 5, 8) != lane);
  CHECK(lanes.between(4, 6, 9));
  CHECK_FALSE(lanes.between(4, 7, 9));
  CHECK_FALSE(lanes.between(3, 4, 9));
  CHECK_FALSE(lanes.between(4, 8, 9));
  expect_error(ErrorKind::usage, {"cpu:0: no way to the memory of emu:0"},
               [] { context("cpu:0").reach("emu:0"); });
  expect_error(ErrorKind::usage, {"emu:0: no way to the memory of cpu:0"},
               [] { context("emu:0").reach("cpu:0"); });
}

}  // namespace convoy
