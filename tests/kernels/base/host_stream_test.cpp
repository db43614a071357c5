#include "kernels/base/host_stream.h"

#include <atomic>
#include <cstdlib>

#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

MemoryPool::Source malloc_memory() {
  return {[](std::size_t bytes) { return std::aligned_alloc(64, bytes); },
          [](void* data, std::size_t) { std::free(data); }};
}

struct Fixture {
  MemoryPool pool{"ref:0", malloc_memory()};
  HostStream stream{"ref:0", pool, nullptr};
  HostStream other{"ref:0", pool, nullptr};
};

// Holds a stream back until it is opened.
struct Gate {
  std::atomic<bool> is_open{false};
  void open() {
    is_open = true;
    is_open.notify_all();
  }
  void pass() { is_open.wait(false); }
};

void fail_with(int number) {
  CONVOY_FAIL(numerics, "failure {}", number);
}

}  // namespace

TEST_CASE("host_stream: work runs in order, and not on the caller's thread") {
  Fixture f;
  std::vector<int> order;
  std::thread::id worker;
  for (int i = 0; i < 1000; ++i) f.stream.submit([&, i] { order.push_back(i); });
  f.stream.host_call([&] { worker = std::this_thread::get_id(); });
  f.stream.synchronize();
  REQUIRE(order.size() == 1000);
  CHECK(std::is_sorted(order.begin(), order.end()));
  CHECK(worker != std::this_thread::get_id());
}

TEST_CASE("host_stream: calls return before the work is done") {
  Fixture f;
  Gate gate;
  f.stream.submit([&] { gate.pass(); });
  const Event event = f.stream.record();
  CHECK(!event.done());
  gate.open();
  event.wait();
  CHECK(event.done());
  CHECK(Event().done());
  Event().wait();
}

TEST_CASE("host_stream: a stream waits for another's event") {
  Fixture f;
  Gate gate;
  std::atomic<int> value = 0;
  int seen = -1;
  f.stream.submit([&] {
    gate.pass();
    value = 7;
  });
  f.other.wait(f.stream.record());
  f.other.submit([&] { seen = value; });
  gate.open();
  f.other.synchronize();
  CHECK(seen == 7);
}

TEST_CASE("host_stream: an event is the point where it was recorded") {
  Fixture f;
  Gate gate;
  const Event before = f.stream.record();
  f.stream.submit([&] { gate.pass(); });
  f.other.wait(before);
  bool ran = false;
  f.other.submit([&] { ran = true; });
  f.other.synchronize();  // would hang if the event took in later work
  CHECK(ran);
  gate.open();
}

TEST_CASE("host_stream: a failure drops later work and surfaces once") {
  Fixture f;
  bool ran = false;
  f.stream.submit([] { fail_with(1); });
  f.stream.submit([&] { ran = true; });
  f.stream.submit([] { fail_with(2); });
  check_error([&] { f.stream.synchronize(); }, ErrorKind::numerics, "failure 1");
  CHECK(!ran);
  CHECK_NOTHROW(f.stream.synchronize());
  f.stream.submit([&] { ran = true; });
  f.stream.synchronize();
  CHECK(ran);
}

TEST_CASE("host_stream: events, waits and host calls go on after a failure") {
  Fixture f;
  bool called = false, followed = false;
  f.stream.submit([] { fail_with(1); });
  f.stream.host_call([&] { called = true; });
  const Event event = f.stream.record();
  f.other.wait(event);
  f.other.submit([&] { followed = true; });
  event.wait();
  f.other.synchronize();
  CHECK(called);
  CHECK(followed);
  CHECK(error_of([&] { f.stream.synchronize(); }).text() == "failure 1");
}

TEST_CASE("host_stream: exceptions of other types surface too") {
  Fixture f;
  f.stream.submit([] { throw std::bad_alloc(); });
  CHECK_THROWS_AS(f.stream.synchronize(), std::bad_alloc);
}

TEST_CASE("host_stream: what the work owned is gone when the stream is idle") {
  Fixture f;
  auto owned = std::make_shared<int>(1);
  f.stream.submit([owned] {});
  f.stream.synchronize();
  CHECK(owned.use_count() == 1);
}

TEST_CASE("host_stream: queued work runs before the stream goes") {
  MemoryPool pool("ref:0", malloc_memory());
  int count = 0;
  {
    HostStream stream("ref:0", pool, nullptr);
    for (int i = 0; i < 100; ++i) stream.submit([&] { ++count; });
  }
  CHECK(count == 100);
}

TEST_CASE("host_stream: work runs with the threads that held when it was queued") {
  static thread_local int applied = 0;
  KernelThreads threads{2, [](int count) { applied = count; }};
  MemoryPool pool("ref:0", malloc_memory());
  HostStream stream("ref:0", pool, &threads);
  Gate gate;
  std::vector<int> seen;
  stream.submit([&] { gate.pass(); });
  stream.submit([&] { seen.push_back(applied); });
  threads.count = 3;
  for (int i = 0; i < 2; ++i) stream.submit([&] { seen.push_back(applied); });
  gate.open();
  stream.synchronize();
  CHECK(seen == std::vector<int>{2, 3, 3});
  CHECK(applied == 0);  // not on this thread
}

TEST_CASE("host_stream: memory may be trimmed while streams come and go") {
  MemoryPool pool("ref:0", malloc_memory());
  std::atomic<bool> over = false;
  std::thread trimmer([&] {
    while (!over) pool.trim();
  });
  for (int i = 0; i < 300; ++i) {
    HostStream stream("ref:0", pool, nullptr);
    pool.allocate(1000, &stream);
  }
  over = true;
  trimmer.join();
  pool.trim();
  CHECK(pool.statistics().reserved == 0);
}

TEST_CASE("host_stream: scratch memory grows and is kept") {
  Fixture f;
  void* first = f.stream.scratch(1000);
  CHECK(f.stream.scratch(500) == first);
  const std::size_t held = f.pool.statistics().in_use;
  CHECK(held >= 1000);
  f.stream.scratch(100000);
  CHECK(f.pool.statistics().in_use >= 100000);
  CHECK(f.pool.statistics().in_use < 100000 + held);  // the old block went back
}

TEST_CASE("host_stream: other kinds of streams are told apart") {
  struct Foreign : Stream {
    Foreign() : Stream("cuda:2") {}
    Event record() override { return {}; }
    void wait(const Event&) override {}
    void synchronize() override {}
    void host_call(std::function<void()>) override {}
    void* scratch(std::size_t) override { return nullptr; }
    void record_to(std::shared_ptr<StreamRecorder>) override {}
  };
  Fixture f;
  CHECK(&host(f.stream) == &f.stream);
  Foreign foreign;
  check_error([&] { host(foreign); }, ErrorKind::internal, "stream of cuda:2 is not a host stream");
}

}  // namespace convoy::testing
