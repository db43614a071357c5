#include "engine/parallel/pipeline/tensor_link.h"

#include <set>

#include "comm/thread_communicator.h"
#include "engine/parallel/pipeline/instruction_mark.h"
#include "kernels/cpu/layout.h"
#include "tests/engine/parallel/workers.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy {
namespace {

using testing::expect_error;

const Device kCpu("cpu:0");
const Device kRef("ref:0");

/// Values from 0 on.
Tensor counted(const Shape& shape, const Device& device) {
  std::vector<float> values(static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::from(values, shape, device);
}

/// Two workers and a link from the first to the second.
struct Pair {
  std::vector<std::unique_ptr<HostCommunicator>> group = make_thread_communicators(2);
  TensorSender sender{*group[0], 1, link_tag(0, LinkDirection::activations)};
  TensorReceiver receiver{*group[1], 0, link_tag(0, LinkDirection::activations)};
};

ExpectedTensors expect(std::int64_t images, std::vector<Shape> shapes) {
  return {.batch = 4, .micro_batch = 9, .images = images, .shapes = std::move(shapes)};
}

}  // namespace

TEST_CASE("tensors arrive with their values, types and layouts") {
  const LayoutId layout = GENERATE(kPlain, cpu::kBlock8, cpu::kBlock16);
  Pair pair;
  const Shape shape = {2, 19, 3, 5};  // blocks of channels are padded
  const Tensor block = counted(shape, kCpu).with_layout(layout);
  const Tensor rows = counted({2, 7}, kCpu);
  Tensor changed = rows.clone();
  pair.sender.send(4, 9, 2, {block, changed});
  changed.zero_();  // the message has a copy
  const ReceivedTensors got = pair.receiver.receive(expect(2, {shape, {2, 7}}), kCpu);
  REQUIRE(got.tensors.size() == 2);
  CHECK(got.tensors[0].layout() == layout);
  CHECK(got.tensors[0].stored_count() == block.stored_count());
  CHECK(got.tensors[0].to_vector<float>() == counted(shape, kCpu).to_vector<float>());
  CHECK(got.tensors[1].to_vector<float>() == rows.to_vector<float>());
  CHECK(got.sent_at < got.arrived_at);
  CHECK_FALSE(got.tensors[0].requires_grad());
}

TEST_CASE("a tensor for a device that does not know its layout arrives row-major") {
  Pair pair;
  const Shape shape = {2, 19, 3, 5};
  pair.sender.send(4, 9, 2, {counted(shape, kCpu).with_layout(cpu::kBlock8)});
  const Tensor got = pair.receiver.receive(expect(2, {shape}), kRef).tensors.at(0);
  CHECK(got.device() == kRef);
  CHECK(got.layout() == kPlain);
  CHECK(got.to_vector<float>() == counted(shape, kRef).to_vector<float>());
}

TEST_CASE("a slice and a tensor of whole numbers arrive too") {
  Pair pair;
  const Tensor part = counted({6, 3}, kRef).slice(2, 4);
  pair.sender.send(4, 9, 2, {part});
  CHECK(pair.receiver.receive(expect(2, {{2, 3}}), kRef).tensors[0].to_vector<float>() ==
        part.to_vector<float>());
  pair.sender.send(4, 9, 2, {Tensor::from(std::vector<std::int64_t>{5, -6}, {2}, kCpu)});
  ExpectedTensors labels = expect(2, {{2}});
  labels.dtype = DType::i64;
  CHECK(pair.receiver.receive(labels, kCpu).tensors[0].to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{5, -6});
}

TEST_CASE("without images a message is a header, with or without empty tensors") {
  Pair pair;
  pair.sender.send(4, 9, 0, {});
  CHECK(pair.receiver.receive(expect(0, {}), kCpu).tensors.empty());
  pair.sender.send(4, 9, 0, {Tensor::empty({0, 16, 2, 2}, {}, cpu::kBlock8)});
  const ReceivedTensors got = pair.receiver.receive(expect(0, {{0, 16, 2, 2}}), kCpu);
  REQUIRE(got.tensors.size() == 1);
  CHECK(got.tensors[0].shape() == Shape{0, 16, 2, 2});
}

TEST_CASE("in a process messages take a lane, from one device to another of its kind") {
  const auto [source, target] = GENERATE(values<std::pair<const char*, const char*>>(
      {{"emu:0", "emu:0"}, {"emu:0", "emu:1"}, {"cpu:0", "cpu:1"}, {"ref:0", "ref:1"}}));
  const Device from(source), to(target);
  const int tag = link_tag(0, LinkDirection::gradients);
  auto group = make_thread_communicators(2);
  ParcelLanes lanes(0, {from, to}, 3);
  TensorSender sender(*group[0], 1, tag, {}, lanes.between(0, 1, tag));
  TensorReceiver receiver(*group[1], 0, tag, {}, lanes.between(0, 1, tag));
  const std::vector<Shape> shapes = {{2, 19, 3, 5}, {2, 7}};
  Tensor changed = counted(shapes[0], from);
  sender.send(4, 9, 2, {changed, counted(shapes[1], from)});
  changed.zero_();  // the parcel has a copy
  sender.send(4, 10, 0, {});
  const ReceivedTensors got = receiver.receive(expect(2, shapes), to);
  REQUIRE(got.tensors.size() == 2);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    CHECK(got.tensors[i].device() == to);
    CHECK(got.tensors[i].to_vector<float>() == counted(shapes[i], kRef).to_vector<float>());
  }
  CHECK(receiver.receive({.batch = 4, .micro_batch = 10}, to).tensors.empty());
  sender.send(4, 9, 2, {counted({2, 3}, from)});
  expect_error(ErrorKind::communication, {"shape of tensor 0 is (2, 3), expected (3, 2)"}, [&] {
    receiver.receive(expect(2, {{3, 2}}), to);
  });
}

TEST_CASE("a message that the schedule does not expect names both values") {
  Pair pair;
  const Tensor x = counted({2, 3}, kCpu);
  const auto refuse = [&](const std::string& text) {
    expect_error(ErrorKind::communication,
                 {"message from rank 0 for batch 4, micro-batch 9: " + text}, [&] {
                   pair.receiver.receive(expect(2, {{2, 3}}), kCpu);
                 });
  };
  pair.sender.send(3, 9, 2, {x});
  refuse("batch is 3, expected 4");
  pair.sender.send(4, 8, 2, {x});
  refuse("micro-batch is 8, expected 9");
  pair.sender.send(4, 9, 1, {x});
  refuse("number of images is 1, expected 2");
  pair.sender.send(4, 9, 2, {x, x});
  refuse("number of tensors is 2, expected 1");
  pair.sender.send(4, 9, 2, {counted({2, 4}, kCpu)});
  refuse("shape of tensor 0 is (2, 4), expected (2, 3)");
  pair.sender.send(4, 9, 2, {x.to(DType::f64)});
  refuse("type of tensor 0 is f64, expected f32");
}

TEST_CASE("a header that no sender of tensors makes is refused") {
  Pair pair;
  LinkSender raw(*pair.group[0], 1, link_tag(1, LinkDirection::gradients));
  TensorReceiver receiver(*pair.group[1], 0, link_tag(1, LinkDirection::gradients));
  LinkHeader header{4, 9, 2, 1, {}};
  header.tensors[0] = {.dtype = 0, .layout = 17, .rank = 2, .extents = {2, 3, 0, 0}};
  raw.send(header, Payload(24));
  expect_error(ErrorKind::communication,
               {"layout of tensor 0 is number 17, expected one of activations"}, [&] {
                 receiver.receive(expect(2, {{2, 3}}), kCpu);
               });
  header.tensors[0].layout = 0;
  raw.send(header, Payload(20));
  expect_error(ErrorKind::communication, {"number of bytes is 20, expected 24"}, [&] {
    receiver.receive(expect(2, {{2, 3}}), kCpu);
  });
}

TEST_CASE("activations and gradients of a stage edge cross at once") {
  constexpr int kMicroBatches = 4;      // as many as the slots of both ends hold
  const Shape shape = {4, 64, 32, 32};  // 1 MiB
  testing::run_workers(2, [&](int rank, HostCommunicator& group) {
    const auto out = static_cast<LinkDirection>(rank);
    const auto in = static_cast<LinkDirection>(1 - rank);
    TensorSender sender(group, 1 - rank, link_tag(0, out));
    TensorReceiver receiver(group, 1 - rank, link_tag(0, in));
    const Tensor mine = Tensor::full(shape, rank + 1);
    for (int k = 0; k < kMicroBatches; ++k) sender.send(0, k, 4, {mine});
    for (int k = 0; k < kMicroBatches; ++k) {
      const ExpectedTensors expected = {
          .batch = 0, .micro_batch = k, .images = 4, .shapes = {shape}};
      const Tensor got = receiver.receive(expected, kCpu).tensors[0];
      CONVOY_DCHECK(got.to_vector<float>() == Tensor::full(shape, 2 - rank).to_vector<float>(),
                    "micro-batch {} is wrong", k);
    }
    sender.flush();
  });
}

TEST_CASE("the watchdog reads instructions as schedules write them") {
  for (int op = 0; op < 9; ++op) {
    const Instruction instruction{static_cast<ScheduleOp>(op), 3, 0};
    CHECK(to_text(mark_of(instruction)) == describe(instruction));
  }
}

TEST_CASE("every edge and direction has a tag of its own") {
  std::set<int> tags = {kLinkTestTag};
  for (int edge = 0; edge < 20; ++edge) {
    tags.insert(link_tag(edge, LinkDirection::activations));
    tags.insert(link_tag(edge, LinkDirection::gradients));
  }
  CHECK(tags.size() == 41);
  expect_error(ErrorKind::usage, {"edge -1, expected 0 to"},
               [] { link_tag(-1, LinkDirection::activations); });
  expect_error(ErrorKind::usage, {"edge 1000000"},
               [] { link_tag(1000000, LinkDirection::gradients); });
}

TEST_CASE("more tensors than a header holds cannot be sent") {
  Pair pair;
  const std::vector<Tensor> many(LinkHeader::kMaxTensors + 1, counted({1}, kCpu));
  expect_error(ErrorKind::usage, {"33 tensors cross a cut, expected at most 32"},
               [&] { pair.sender.send(4, 9, 1, many); });
}

}  // namespace convoy
