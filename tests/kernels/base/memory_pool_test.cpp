#include "kernels/base/memory_pool.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>

#include "kernels/base/host_stream.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// A system with so many bytes, which counts what is taken and given back.
struct System {
  std::size_t limit = 1000 * kMiB;
  std::size_t taken = 0;

  MemoryPool::Source source() {
    return {[this](std::size_t bytes) -> void* {
              if (taken + bytes > limit) return nullptr;
              taken += bytes;
              return std::aligned_alloc(64, bytes);
            },
            [this](void* data, std::size_t bytes) {
              taken -= bytes;
              std::free(data);
            }};
  }
};

struct Fixture {
  System system;
  MemoryPool pool{"ref:0", system.source()};
  std::unique_ptr<HostStream> stream = std::make_unique<HostStream>("ref:0", pool, nullptr);
  std::unique_ptr<HostStream> other = std::make_unique<HostStream>("ref:0", pool, nullptr);

  MemoryPool::Block take(std::size_t bytes) { return pool.allocate(bytes, stream.get()); }
  std::uint64_t system_requests() const { return pool.statistics().system_requests; }
};

void drop(MemoryPool::Block block) {
  CHECK(block.data() != nullptr);
}

}  // namespace

TEST_CASE("memory_pool: blocks are aligned, apart, and as large as asked for") {
  Fixture f;
  std::vector<MemoryPool::Block> blocks;
  for (std::size_t bytes : {0, 1, 63, 64, 65, 1000, 3 << 20}) {
    blocks.push_back(f.take(bytes));
    CHECK(blocks.back().bytes() >= bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(blocks.back().data()) % 64 == 0);
    std::memset(blocks.back().data(), 1, bytes);
  }
  for (const auto& a : blocks) {
    for (const auto& b : blocks) {
      if (&a == &b) continue;
      const auto* first = static_cast<const char*>(a.data());
      const auto* second = static_cast<const char*>(b.data());
      CHECK((first + a.bytes() <= second || second + b.bytes() <= first));
    }
  }
}

TEST_CASE("memory_pool: a freed block goes to the same stream again, at once") {
  Fixture f;
  MemoryPool::Block block = f.take(1000);
  void* data = block.data();
  drop(std::move(block));
  CHECK(f.take(1000).data() == data);
  CHECK(f.system_requests() == 1);
}

TEST_CASE("memory_pool: another stream gets memory of its own") {
  Fixture f;
  MemoryPool::Block block = f.take(1000);
  void* data = block.data();
  drop(std::move(block));
  CHECK(f.pool.allocate(1000, f.other.get()).data() != data);
  CHECK(f.system_requests() == 2);
}

TEST_CASE("memory_pool: what a stream has freed is anybody's when it is gone") {
  Fixture f;
  MemoryPool::Block early = f.take(1000);
  MemoryPool::Block late = f.take(2 * kMiB);
  void* early_data = early.data();
  void* late_data = late.data();
  drop(std::move(early));
  f.stream.reset();
  drop(std::move(late));  // freed after its stream has gone
  MemoryPool::Block small = f.pool.allocate(1000, f.other.get());
  MemoryPool::Block large = f.pool.allocate(2 * kMiB, f.other.get());
  // Both segments are whole again, so that either may be split first.
  CHECK(std::set{small.data(), large.data()} == std::set{early_data, late_data});
  CHECK(f.system_requests() == 2);
}

TEST_CASE("memory_pool: what several streams have freed is whole again when they are gone") {
  for (bool first_goes_last : {false, true}) {
    Fixture f;
    std::optional<MemoryPool::Block> first(f.take(kMiB));
    f.stream.reset();
    MemoryPool::Block second = f.pool.allocate(kMiB, f.other.get());  // the rest of the segment
    CHECK(f.system_requests() == 1);
    if (!first_goes_last) first.reset();
    drop(std::move(second));
    f.other.reset();
    first.reset();
    f.pool.trim();
    CHECK(f.system.taken == 0);
  }
}

TEST_CASE("memory_pool: segments are split, and merged again in any order of release") {
  for (const auto& order : {std::vector<int>{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 1, 3}}) {
    Fixture f;
    std::vector<MemoryPool::Block> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(f.take(kMiB / 2));
    CHECK(f.system_requests() == 1);
    auto* first = static_cast<char*>(blocks[0].data());
    for (int i = 0; i < 4; ++i) CHECK(blocks[i].data() == first + i * kMiB / 2);
    for (int i : order) drop(std::move(blocks[i]));
    CHECK(f.take(2 * kMiB).data() == first);
    CHECK(f.system_requests() == 1);
  }
}

TEST_CASE("memory_pool: the smallest free block that is large enough is taken") {
  Fixture f;
  MemoryPool::Block large = f.take(6 * kMiB), small = f.take(4 * kMiB);
  void* small_data = small.data();
  drop(std::move(large));
  drop(std::move(small));
  CHECK(f.take(3 * kMiB).data() == small_data);
}

TEST_CASE("memory_pool: statistics") {
  Fixture f;
  MemoryPool::Block a = f.take(100), b = f.take(3 * kMiB);
  MemoryStatistics now = f.pool.statistics();
  CHECK(now.in_use == 128 + 3 * kMiB);
  CHECK(now.reserved == 2 * kMiB + 4 * kMiB);
  CHECK(now.reserved == f.system.taken);
  CHECK(now.requests == 2);
  CHECK(now.system_requests == 2);
  drop(std::move(b));
  drop(f.take(64));
  now = f.pool.statistics();
  CHECK(now.in_use == 128);
  CHECK(now.peak_in_use == 128 + 3 * kMiB);
  CHECK(now.peak_reserved == 6 * kMiB);
  CHECK(now.requests == 3);
  CHECK(now.system_requests == 2);
  f.pool.reset_peak();
  CHECK(f.pool.statistics().peak_in_use == 128);
}

TEST_CASE("memory_pool: the cap holds for blocks in use, and the error has the request") {
  Fixture f;
  f.pool.set_cap(2000);
  MemoryPool::Block block = f.take(1000);  // 1024 with alignment
  check_error([&] { f.take(1000); }, ErrorKind::resource,
              "ref:0: out of memory: 1000 bytes asked for, 1024 of the cap of 2000 bytes in use");
  CHECK_NOTHROW(f.take(900));
  drop(std::move(block));
  CHECK_NOTHROW(f.take(1000));
  f.pool.set_cap(0);
  CHECK_NOTHROW(f.take(kMiB));
}

TEST_CASE("memory_pool: a block that is not counted, and the share that counts for it") {
  Fixture f, other;
  MemoryPool::Block counted = f.take(64);
  f.pool.set_cap(2000);
  MemoryPool::Block block = f.pool.allocate_uncounted(5000, f.stream.get());
  CHECK(block.bytes() >= 5000);
  CHECK(f.pool.statistics().in_use == 64);
  CHECK(f.pool.statistics().peak_in_use == 64);
  CHECK(f.pool.statistics().requests == 2);
  {
    MemoryPool::Share share = other.pool.share(5000);
    MemoryPool::Share moved = std::move(share);
    CHECK(other.pool.statistics().in_use == 5056);  // as a block of so many
    share = std::move(moved);
    CHECK(other.pool.statistics().in_use == 5056);
  }
  CHECK(other.pool.statistics().in_use == 0);
  CHECK(other.pool.statistics().peak_in_use == 5056);
  CHECK(other.pool.statistics().reserved == 0);
  void* data = block.data();
  drop(std::move(block));
  CHECK(f.pool.statistics().in_use == 64);
  f.pool.set_cap(0);
  MemoryPool::Block again = f.take(5000);
  CHECK(again.data() == data);
  CHECK(f.pool.statistics().in_use == 64 + 5056);
  f.pool.set_cap(6000);
  check_error([&] { (void)f.pool.share(1000); }, ErrorKind::resource,
              "ref:0: out of memory: 1000 bytes asked for, 5120 of the cap of 6000 bytes in use");
}

TEST_CASE("memory_pool: sizes that no machine has are refused") {
  for (std::size_t cap : {std::size_t{0}, kMiB}) {
    Fixture f;
    f.pool.set_cap(cap);
    MemoryPool::Block block = f.take(64);
    for (std::size_t bytes : {SIZE_MAX, SIZE_MAX - 62, SIZE_MAX - (2 << 20), SIZE_MAX - 64}) {
      INFO(bytes);
      const Error error = error_of([&] { f.take(bytes); });
      CHECK(error.kind() == ErrorKind::resource);
      CHECK(error.text().find(std::to_string(bytes) + " bytes asked for") != std::string::npos);
    }
  }
}

TEST_CASE("memory_pool: where the system has no more, kept memory is given back first") {
  Fixture f;
  f.system.limit = 8 * kMiB;
  drop(f.take(4 * kMiB));
  drop(f.take(6 * kMiB));  // fits only without the first segment
  CHECK(f.system.taken == 6 * kMiB);
  MemoryPool::Block block = f.take(6 * kMiB);
  check_error(
      [&] { f.take(4 * kMiB); }, ErrorKind::resource,
      "ref:0: out of memory: 4194304 bytes asked for, the system gives no more than 6291456");
}

TEST_CASE("memory_pool: trim gives back segments without blocks, after their stream's work") {
  Fixture f;
  MemoryPool::Block kept = f.take(1000);
  drop(f.take(4 * kMiB));
  std::atomic<bool> ran = false;
  f.stream->submit([&] { ran = true; });
  f.pool.trim();
  CHECK(ran);
  CHECK(f.system.taken == 2 * kMiB);
  CHECK(f.pool.statistics().reserved == 2 * kMiB);
  drop(std::move(kept));
  f.pool.trim();
  CHECK(f.system.taken == 0);
}

TEST_CASE("memory_pool: trim may wait for work that frees blocks itself") {
  Fixture f;
  std::atomic<bool> gate = false;
  auto owned = std::make_shared<MemoryPool::Block>(f.take(kMiB));
  drop(f.take(4 * kMiB));
  f.stream->submit([&gate, owned] { gate.wait(false); });
  owned.reset();
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until trim() waits
    gate = true;
    gate.notify_all();
  });
  f.pool.trim();
  opener.join();
  f.stream->synchronize();
  f.pool.trim();
  CHECK(f.system.taken == 0);
}

TEST_CASE("memory_pool: a block that another stream uses comes back after its event") {
  Fixture f;
  std::atomic<bool> gate = false;
  f.other->submit([&] { gate.wait(false); });
  MemoryPool::Block block = f.take(2 * kMiB);
  void* data = block.data();
  const Event event = f.other->record();
  block.use_until(event);
  drop(std::move(block));
  MemoryPool::Block second = f.take(2 * kMiB);
  CHECK(second.data() != data);
  gate = true;
  gate.notify_all();
  event.wait();
  CHECK(f.take(2 * kMiB).data() == data);
}

TEST_CASE("memory_pool: blocks move, and an empty one is nothing") {
  Fixture f;
  MemoryPool::Block empty;
  CHECK(empty.data() == nullptr);
  CHECK(empty.bytes() == 0);
  MemoryPool::Block block = f.take(64);
  void* data = block.data();
  MemoryPool::Block moved = std::move(block);
  CHECK(moved.data() == data);
  CHECK(f.pool.statistics().in_use == 64);
  moved = MemoryPool::Block();
  CHECK(f.pool.statistics().in_use == 0);
}

TEST_CASE("memory_pool: threads share it") {
  Fixture f;
  auto work = [&](HostStream* stream) {
    for (int i = 0; i < 2000; ++i) {
      MemoryPool::Block block = f.pool.allocate(64 + i % 777 * 64, stream);
      std::memset(block.data(), i, 64);
    }
  };
  std::thread first(work, f.stream.get()), second(work, f.other.get());
  first.join();
  second.join();
  CHECK(f.pool.statistics().in_use == 0);
  CHECK(f.pool.statistics().requests == 4000);
}

namespace {

// A system whose memory is one array, taken from its end.
struct Array {
  std::vector<std::byte> bytes = std::vector<std::byte>(64 * kMiB);
  std::size_t used = 0;
  std::size_t taken = 0;
  bool blocked = false;  // somebody else sits before what was taken last

  void* take(std::size_t size) {
    if (std::exchange(blocked, false)) used += kMiB;
    used += size;
    taken += size;
    return bytes.data() + bytes.size() - used;
  }
  MemoryPool::Source source() {
    MemoryPool::Source source;
    source.take = [this](std::size_t size) { return take(size); };
    source.give_back = [this](void*, std::size_t size) { taken -= size; };
    source.take_before = [this](void* data, std::size_t size) -> void* {
      CHECK(data == bytes.data() + bytes.size() - used);
      return blocked ? nullptr : take(size);
    };
    return source;
  }
};

}  // namespace

TEST_CASE("memory_pool: a segment grows before its first block, by what is missing there") {
  Array system;
  MemoryPool pool("ref:0", system.source());
  HostStream stream("ref:0", pool, nullptr), other("ref:0", pool, nullptr);
  const auto take = [&](std::size_t bytes, Stream* by) { return pool.allocate(bytes, by); };
  const MemoryPool::Block last = take(2 * kMiB, &stream);
  drop(take(4 * kMiB, &stream));
  // 4 MiB are free: 2 more make 6, and the whole is one when all of it is free.
  MemoryPool::Block first = take(6 * kMiB, &stream);
  CHECK(system.taken == 8 * kMiB);
  CHECK(static_cast<std::byte*>(first.data()) + 6 * kMiB == last.data());
  std::memset(first.data(), 1, 6 * kMiB);
  drop(std::move(first));
  // What another stream has freed is not part of it.
  MemoryPool::Block others = take(8 * kMiB, &other);
  CHECK(pool.statistics().reserved == 16 * kMiB);
  // Where it cannot grow, there is a second segment, which grows then.
  system.blocked = true;
  drop(take(10 * kMiB, &stream));
  drop(take(12 * kMiB, &stream));
  CHECK(pool.statistics().reserved == 28 * kMiB);
  pool.trim();
  CHECK(pool.statistics().reserved == 16 * kMiB);
  // The segment that grew last is gone.
  drop(take(8 * kMiB, &stream));
  CHECK(pool.statistics().reserved == 24 * kMiB);
  CHECK(system.taken == 24 * kMiB);
}

TEST_CASE("memory_pool: all memory goes back with the pool") {
  System system;
  {
    MemoryPool pool("ref:0", system.source());
    HostStream stream("ref:0", pool, nullptr);
    drop(pool.allocate(5 * kMiB, &stream));
    drop(pool.allocate(100, &stream));
    CHECK(system.taken > 0);
  }
  CHECK(system.taken == 0);
}

TEST_CASE("memory_pool: blocks that are allocations of their own go back in stream order") {
  System system;
  std::vector<Stream*> given_back;
  MemoryPool::Source source = system.source();
  source.give_back_block = [&](void* data, Stream* stream) {
    given_back.push_back(stream);
    std::free(data);
    return true;
  };
  MemoryPool pool("ref:0", source);
  auto stream = std::make_unique<HostStream>("ref:0", pool, nullptr);
  MemoryPool::Block first = pool.allocate(5, stream.get());
  MemoryPool::Block second = pool.allocate(0, stream.get());
  CHECK(first.bytes() == 5);
  CHECK(system.taken == 6);
  drop(std::move(first));
  CHECK(given_back == std::vector<Stream*>{stream.get()});
  CHECK(pool.statistics().reserved == 1);
  stream.reset();
  drop(std::move(second));
  CHECK(given_back.back() == nullptr);
  CHECK(pool.statistics().in_use == 0);
  system.limit = 0;
  expect_error(ErrorKind::resource, {"ref:0", "7 bytes asked for"},
               [&] { pool.allocate(7, nullptr); });
}

TEST_CASE("memory_pool: what a stream has freed is not trimmed while captured work may use it") {
  Fixture f;
  void* const data = f.take(1000).data();
  f.pool.hold(f.stream.get());
  f.pool.hold(f.stream.get());
  f.pool.let_go(f.stream.get());
  f.pool.trim();
  CHECK(f.pool.statistics().reserved == 2 * kMiB);
  CHECK(f.take(1000).data() == data);
  f.pool.let_go(f.stream.get());
  f.pool.trim();
  CHECK(f.pool.statistics().reserved == 0);
  expect_error(ErrorKind::internal, {"ref:0"}, [&] { f.pool.let_go(f.stream.get()); });
}

TEST_CASE("memory_pool: what cannot go back, or must not yet, goes later") {
  System system;
  std::vector<void*> given_back;
  bool permitted = false;
  MemoryPool::Source source = system.source();
  source.give_back_block = [&](void* data, Stream*) {
    if (permitted) given_back.push_back(data);
    if (permitted) std::free(data);
    return permitted;
  };
  MemoryPool pool("ref:0", source);
  auto stream = std::make_unique<HostStream>("ref:0", pool, nullptr);
  MemoryPool::Block first = pool.allocate(5, stream.get());
  void* const first_data = first.data();
  drop(std::move(first));
  CHECK(given_back.empty());
  permitted = true;
  pool.hold(stream.get());
  MemoryPool::Block second = pool.allocate(7, stream.get());
  void* const second_data = second.data();
  CHECK(given_back.empty());
  pool.let_go(stream.get());
  drop(std::move(second));
  CHECK(given_back == std::vector<void*>{first_data, second_data});
  MemoryPool::Block third = pool.allocate(9, stream.get());
  stream.reset();
  permitted = false;
  drop(std::move(third));
  CHECK(pool.statistics().reserved == 9);
  permitted = true;
  pool.trim();
  CHECK(pool.statistics().reserved == 0);
  CHECK(given_back.size() == 3);
}

}  // namespace convoy::testing
