// The GPU backend around the kernels, on emulated devices.
#include "kernels/cuda/context.h"

#include <atomic>
#include <numeric>
#include <thread>

#include "kernels/backends.h"
#include "kernels/base/graph.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/stream.h"
#include "kernels/emulator/devices.h"
#include "kernels/emulator/streams.h"
#include "kernels/emulator/test_control.h"
#include "kernels/kernel_list.h"
#include "tests/kernels/emulator/runtime_support.h"
#include "tests/support/expect_error.h"

namespace convoy::emulator {
namespace {

using testing::check_error;
using testing::error_of;
using testing::expect_error;

// Device memory that holds `values`, and reads them back.
class Values {
 public:
  Values(DeviceContext& on, Stream& stream, const std::vector<float>& values)
      : on_(on),
        stream_(stream),
        count_(values.size()),
        block_(on.memory().allocate(bytes(), &stream)) {
    on.copy_in(stream, block_.data(), values.data(), bytes());
  }
  std::size_t bytes() const { return count_ * sizeof(float); }
  void* data() const { return block_.data(); }
  Buffer buffer() const { return {block_.data(), DType::f32, kPlain}; }
  std::vector<float> read() const {
    std::vector<float> values(count_);
    on_.copy_out(stream_, values.data(), block_.data(), bytes());
    return values;
  }

 private:
  DeviceContext& on_;
  Stream& stream_;
  std::size_t count_;
  MemoryPool::Block block_;
};

using Floats = std::vector<float>;

}  // namespace

TEST_CASE("gpu context: devices that are there and one that is not") {
  for (const Device& device : {Device("emu:0"), Device("emu:1")}) {
    DeviceContext& on = context(device);
    CHECK(on.device() == device);
    CHECK(on.describe() == "emulated CUDA device, 4 SMs, sm_90");
    CHECK(on.default_stream().device() == device);
  }
  check_error([] { context("emu:64"); }, ErrorKind::usage,
              "device: emu:64 is not here: there are 64");
  CHECK(device_count(DeviceType::emu) >= 1);
}

TEST_CASE("gpu context: copies in, inside, out, and to another device") {
  DeviceContext& on = context("emu:0");
  DeviceContext& other = context("emu:1");
  Stream& stream = on.default_stream();
  Floats source(1000);
  std::iota(source.begin(), source.end(), 1.0f);
  const Floats expected = source;
  const Values a(on, stream, source), b(on, stream, Floats(1000));
  const Values c(other, other.default_stream(), Floats(1000));
  on.copy_in(stream, a.data(), source.data(), a.bytes());
  std::fill(source.begin(), source.end(), 0.0f);  // the source may be reused at once
  on.copy(stream, b.data(), a.data(), a.bytes());
  CHECK(b.read() == expected);
  other.default_stream().wait(stream.record());
  other.copy(other.default_stream(), c.data(), b.data(), b.bytes());
  CHECK(c.read() == expected);
  on.copy_in(stream, nullptr, nullptr, 0);
  on.copy_out(stream, nullptr, nullptr, 0);
  on.copy(stream, nullptr, nullptr, 0);
}

TEST_CASE("gpu context: copies in do not wait for the stream") {
  DeviceContext& on = context("emu:0");
  const std::unique_ptr<Stream> stream = on.make_stream();
  const MemoryPool::Block block = on.memory().allocate(4000, stream.get());
  Gate gate;
  gate.close(handle(*stream));
  std::vector<int> source(1000);
  for (int i = 0; i < 20; ++i) {
    std::fill(source.begin(), source.end(), i);
    on.copy_in(*stream, block.data(), source.data(), 4000);
  }
  CHECK(cudaStreamQuery(handle(*stream)) == cudaErrorNotReady);
  gate.open();
  on.copy_out(*stream, source.data(), block.data(), 4000);
  CHECK(source == std::vector<int>(1000, 19));
}

TEST_CASE("gpu stream: events order streams of one device, of two, and of the host") {
  DeviceContext& on = context("emu:0");
  const std::unique_ptr<Stream> first = on.make_stream(), second = on.make_stream();
  const std::unique_ptr<Stream> third = context("emu:1").make_stream();
  const std::unique_ptr<Stream> fourth = context("ref:0").make_stream();
  std::atomic<int> place = 0;
  Gate gate;
  gate.close(handle(*first));
  first->host_call([&place] { place = 1; });
  const Event event = first->record();
  CHECK(!event.done());
  std::vector<Stream*> later = {second.get(), third.get(), fourth.get()};
  std::atomic<int> right = 0;
  for (Stream* each : later) {
    each->wait(event);
    each->host_call([&] { right += place == 1; });
  }
  // A GPU's stream waits for the host's too.
  first->wait(fourth->record());
  gate.open();
  event.wait();
  CHECK(event.done());
  for (Stream* each : later) each->synchronize();
  first->synchronize();
  CHECK(right == 3);
  first->wait(event);
  first->wait(Event());
  first->synchronize();
}

TEST_CASE("gpu stream: a failing call of the host surfaces once, and what follows still runs") {
  const std::unique_ptr<Stream> stream = context("emu:0").make_stream();
  bool ran = false;
  stream->host_call([] { CONVOY_FAIL(communication, "peer 3 is gone"); });
  stream->host_call([] { CONVOY_FAIL(communication, "a later one"); });
  stream->host_call([&ran] { ran = true; });
  check_error([&] { stream->synchronize(); }, ErrorKind::communication, "peer 3 is gone");
  CHECK(ran);
  stream->synchronize();
}

TEST_CASE("gpu stream: bad labels are reported by the kernel and surface at synchronize") {
  DeviceContext& on = context("emu:0");
  Stream& stream = on.default_stream();
  const Values logits(on, stream, Floats(6, 0.0f)), loss(on, stream, {0.0f});
  const std::int64_t labels[] = {0, 3};
  const MemoryPool::Block block = on.memory().allocate(sizeof labels, &stream);
  on.copy_in(stream, block.data(), labels, sizeof labels);
  CrossEntropyShape shape;
  shape.rows = 2;
  shape.classes = 3;
  on.kernels().softmax_cross_entropy(stream, shape, logits.buffer(),
                                     {block.data(), DType::i64, kPlain}, loss.buffer(), {});
  check_error([&] { stream.synchronize(); }, ErrorKind::data,
              "softmax_cross_entropy: label 3 of row 1, expected 0..2");
  stream.synchronize();
}

TEST_CASE("gpu stream: scratch grows, and stays where it is enough") {
  const std::unique_ptr<Stream> stream = context("emu:0").make_stream();
  void* const first = stream->scratch(1000);
  CHECK(first != nullptr);
  CHECK(stream->scratch(10) == first);
  CHECK(stream->scratch(10 << 20) != nullptr);
  CHECK(owner_of(stream->scratch(1)) == 0);
}

TEST_CASE("gpu stream: a recorder is told of kernels and copies by name and in order") {
  struct Recorder : StreamRecorder {
    void ran(const StreamSpan& span) override { spans.push_back(span); }
    std::vector<StreamSpan> spans;
  };
  DeviceContext& on = context("emu:1");
  Stream& stream = on.default_stream();
  const Values values(on, stream, Floats(100, 1.0f));
  const auto recorder = std::make_shared<Recorder>();
  const auto before = std::chrono::steady_clock::now();
  stream.record_to(recorder);
  on.kernels().fill(stream, 100, 2.0, values.buffer());
  CHECK_THROWS_AS(on.copy(stream, nullptr, values.data(), 4), Error);  // a span without an end
  on.kernels().scale(stream, 100, 3.0, values.buffer());
  CHECK(values.read() == Floats(100, 6.0f));
  stream.record_to(nullptr);
  stream.record().wait();
  const auto after = std::chrono::steady_clock::now();
  on.kernels().fill(stream, 100, 2.0, values.buffer());
  stream.synchronize();
  REQUIRE(recorder->spans.size() == 3);
  const std::vector<std::string> names = {"fill", "scale", "copy_out"};
  auto last = before;
  for (std::size_t i = 0; i < 3; ++i) {
    const StreamSpan& span = recorder->spans[i];
    CHECK(span.kernel == names[i]);
    CHECK(span.device == Device("emu:1"));
    // Times of the device become the host's with the precision of a float of milliseconds.
    CHECK(span.begin >= last - std::chrono::microseconds(100));
    CHECK(span.end >= span.begin);
    last = span.end;
  }
  CHECK(last <= after + std::chrono::microseconds(100));
}

TEST_CASE("gpu stream: streams of other backends are refused") {
  Stream& stream = context("ref:0").default_stream();
  expect_error(ErrorKind::internal, {"ref:0", "not one of this backend"}, [&] { handle(stream); });
  expect_error(ErrorKind::internal, {"ref:0"}, [&] { allows_tf32(stream); });
}

TEST_CASE("gpu context: settings") {
  DeviceContext& on = context("emu:2");
  CHECK(!allows_tf32(on.default_stream()));
  on.set_tf32(true);
  CHECK(allows_tf32(on.default_stream()));
  CHECK(!allows_tf32(context("emu:1").default_stream()));
  on.set_tf32(false);
  CHECK(!allows_tf32(on.default_stream()));
  context("ref:0").set_tf32(false);
  check_error([] { context("ref:0").set_tf32(true); }, ErrorKind::usage,
              "ref:0: no tf32 here, which cuda:K and emu:K have");
  on.set_threads(3);
  CHECK(on.threads() == 3);
  check_error([&] { on.set_threads(0); }, ErrorKind::usage,
              "emu:2: 0 threads asked for, at least 1 is needed");
}

TEST_CASE("gpu context: memory ends at the device's capacity, and comes back when trimmed") {
  DeviceContext& on = context("emu:3");
  Stream& stream = on.default_stream();
  set_capacity(3, std::size_t{8} << 20);
  {
    const MemoryPool::Block first = on.memory().allocate(5 << 20, &stream);
    expect_error(ErrorKind::resource, {"emu:3: out of memory: 5242880 bytes asked for"},
                 [&] { on.memory().allocate(5 << 20, &stream); });
  }
  // What no block holds goes back for the new one.
  const MemoryPool::Block second = on.memory().allocate(7 << 20, &stream);
  CHECK(second.data() != nullptr);
}

TEST_CASE("gpu context: a fault of the device is told with the kernel's text, by every call") {
  DeviceContext& on = context("emu:4");
  const std::unique_ptr<Stream> stream = on.make_stream();
  REQUIRE(queue_work(handle(*stream), {[] {
                       throw DeviceFault(cudaErrorIllegalAddress, "kernel k, block 0: it fell");
                     }}) == cudaSuccess);
  const Event event = [&] {
    cudaStreamSynchronize(handle(*stream));
    revive(4);
    const Event recorded = stream->record();
    emulated_device(4).set_fault(cudaErrorIllegalAddress, "kernel k, block 0: it fell");
    return recorded;
  }();
  event.wait();  // nobody hangs
  CHECK(event.done());
  const std::string text =
      "CUDA: cudaErrorIllegalAddress: an illegal memory access was encountered: kernel k, block 0: "
      "it fell";
  CHECK(error_of([&] { stream->record(); }).text() == text);
  // The device is made the thread's before anything else: that works, the rest does not.
  CHECK(error_of([&] { stream->synchronize(); }).text() == text);
  CHECK(error_of([&] { stream->host_call([] {}); }).text() == text);
  CHECK(error_of([&] { on.make_stream(); }).text() == text);
  revive(4);
  stream->synchronize();
  cudaSetDevice(0);
}

TEST_CASE("gpu context: errors of calls have CUDA's name, text and what was wrong") {
  check(cudaSuccess);
  void* pointer = nullptr;
  const Error error = error_of([&] { check(cudaMalloc(&pointer, std::size_t{1} << 50)); });
  CHECK(error.kind() == ErrorKind::resource);
  CHECK(error.text().find("CUDA: cudaErrorMemoryAllocation: out of memory: 1125899906842624 bytes "
                          "asked for") == 0);
  CHECK(error.place().find("context_test.cpp:") != std::string::npos);
  cudaGetLastError();
  check_error([] { check(cudaSetDevice(64)); }, ErrorKind::internal,
              "CUDA: cudaErrorInvalidDevice: invalid device ordinal");
}

TEST_CASE("gpu graph: a captured step runs again on the memory that it knew") {
  DeviceContext& on = context("emu:0");
  REQUIRE(on.can_capture());
  const std::unique_ptr<Stream> stream = on.make_stream();
  const Values x(on, *stream, Floats(100, 1.0f));
  auto step = [&] {
    // Memory of the step itself: freed here, and yet the graph's.
    const MemoryPool::Block inner = on.memory().allocate(400, stream.get());
    on.kernels().scale(*stream, 100, 2.0, x.buffer());
    on.copy(*stream, inner.data(), x.data(), 400);
    on.copy(*stream, x.data(), inner.data(), 400);
  };
  step();
  stream->scratch(1 << 16);
  stream->synchronize();
  on.begin_capture(*stream);
  stream->scratch(1 << 10);
  step();
  CHECK(stream->record().done());
  const std::unique_ptr<Graph> graph = on.end_capture(*stream);
  CHECK(graph->nodes() == 3);
  CHECK(x.read() == Floats(100, 2.0f));
  const std::size_t held = on.memory().statistics().reserved;
  on.memory().trim();
  for (int i = 0; i < 3; ++i) graph->launch();
  CHECK(x.read() == Floats(100, 16.0f));
  CHECK(on.memory().statistics().reserved <= held);
}

TEST_CASE("gpu graph: what a capture cannot hold fails it") {
  DeviceContext& on = context("emu:0");
  const std::unique_ptr<Stream> stream = on.make_stream();
  const Values x(on, *stream, Floats(10, 1.0f));
  const Event outside = stream->record();
  check_error([&] { on.begin_capture(on.default_stream()); }, ErrorKind::usage,
              "emu:0: the default stream cannot be captured, only one for that alone");
  on.begin_capture(*stream);
  stream->wait(outside);  // has passed
  expect_error(ErrorKind::internal, {"a graph cannot hold a call of the host"},
               [&] { stream->host_call([] {}); });
  expect_error(ErrorKind::internal, {"a graph cannot hold a copy of memory that goes away"},
               [&] { on.copy_in(*stream, x.data(), &outside, 4); });
  expect_error(ErrorKind::internal, {"cudaErrorStreamCaptureUnsupported"},
               [&] { stream->synchronize(); });
  expect_error(ErrorKind::internal, {"cudaErrorStreamCaptureInvalidated"},
               [&] { on.end_capture(*stream); });
  CHECK(x.read() == Floats(10, 1.0f));
  for (auto call : {+[](DeviceContext& ref) { ref.begin_capture(ref.default_stream()); },
                    +[](DeviceContext& ref) { ref.end_capture(ref.default_stream()); }}) {
    CHECK(!context("ref:0").can_capture());
    check_error([&] { call(context("ref:0")); }, ErrorKind::usage,
                "ref:0: no graphs here, which cuda:K and emu:K have");
  }
}

TEST_CASE("gpu context: while memory is watched each block is an allocation of its own") {
  struct Watcher : MemoryObserver {
    void allocated(const Allocation&) override {}
    void freed(const Allocation&) override {}
    void written(void*, std::size_t) override {}
    void copied(void*, const void*, std::size_t) override {}
  };
  static Watcher watcher;
  MemoryObserver* const before = memory_observer();
  set_memory_observer(&watcher);
  const std::unique_ptr<DeviceContext> on = emulator::open(6);
  set_memory_observer(before);
  Stream& stream = on->default_stream();
  const void* gone = nullptr;
  Gate gate;
  {
    const MemoryPool::Block block = on->memory().allocate(100, &stream);
    const std::optional<Allocation> found = lookup(block.data());
    REQUIRE(found);
    CHECK(found->bytes == 100);
    CHECK(static_cast<void*>(found->data) == block.data());
    gone = block.data();
    gate.close(handle(stream));
  }
  CHECK(!lookup(gone)->freed);  // queued work may still use it
  const MemoryPool::Block next = on->memory().allocate(100, &stream);
  CHECK(next.data() != gone);
  gate.open();
  stream.synchronize();
  CHECK(lookup(gone)->freed);
}

}  // namespace convoy::emulator
