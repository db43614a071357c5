#include <mutex>
#include <string>
#include <vector>

#include "kernels/cuda/shared.h"
#include "kernels/emulator/async_copy.h"
#include "kernels/emulator/mbarrier.h"
#include "tests/kernels/emulator/machine_support.h"

namespace convoy::emulator {
namespace {

/// Writes down what it is told of.
class Recorder final : public Observer {
 public:
  std::vector<std::string> events;

  void grid_begin(const GridWork& work) override { events.push_back("grid " + work.kernel); }
  void grid_end(const GridWork&) override { events.emplace_back("grid end"); }
  void block_begin(Block& block) override { events.push_back("block " + number(block.index.x)); }
  void block_end(Block&) override { events.emplace_back("block end"); }
  void thread_begin(Thread& thread) override { events.push_back("thread " + number(thread.rank)); }
  void thread_end(Thread& thread) override { events.push_back("end " + number(thread.rank)); }
  void synchronize(Block& block, const ThreadSet& threads, bool whole) override {
    events.push_back((whole ? "barrier of " : "part of ") + number(threads.count()) + " after " +
                     number(block.barriers) + " and " + number(block.threads[0].collectives));
  }
  void release(Thread&, const void*) override { events.emplace_back("release"); }
  void acquire(Thread&, const void*) override { events.emplace_back("acquire"); }
  void fence(Thread&) override { events.emplace_back("fence"); }
  void read(const void*, std::size_t bytes, const void*) override {
    events.push_back("read " + number(bytes));
  }
  void write(const void*, std::size_t bytes, const void*) override {
    events.push_back("write " + number(bytes));
  }
  void atomic(const void*, std::size_t bytes, const void*) override {
    events.push_back("atomic " + number(bytes));
  }
  void undefine(const void*, std::size_t bytes) override {
    events.push_back("undefine " + number(bytes));
  }

 private:
  static std::string number(std::size_t n) { return std::to_string(n); }
};

std::vector<std::string> events_of(const LaunchConfig& config, std::function<void()> thread) {
  Recorder recorder;
  MachineOptions options;
  options.workers = 1;
  options.lateness = Lateness::late;
  options.observer = &recorder;
  const MachineOptionsScope scope(options);
  run(config, std::move(thread));
  return recorder.events;
}

TEST_CASE("an observer sees blocks, threads and barriers", "[emulator]") {
  using Events = std::vector<std::string>;
  CHECK(events_of({.grid = 2, .block = 2},
                  [] {
                    if (blockIdx.x == 0) __syncthreads();
                    if (blockIdx.x == 1) __syncwarp();
                  }) == Events{"grid test_kernel", "block 0", "thread 0", "thread 1",
                               "barrier of 2 after 1 and 0", "end 0", "end 1", "block end",
                               "block 1", "thread 0", "thread 1", "part of 2 after 0 and 1",
                               "end 0", "end 1", "block end", "grid end"});
}

TEST_CASE("an observer sees what models of instructions touch", "[emulator]") {
  struct Storage {
    alignas(16) char at[32];
    Mbarrier barrier;
  };
  alignas(16) static const char from[16] = {};
  static int count = 0;
  const auto events = events_of({.shared_bytes = sizeof(Storage)}, [] {
    auto& s = smem<Storage>();
    copy_async(s.at, from, 16, 12);
    copy_async_wait_all();
    atomicAdd(&count, 1);
    __threadfence();
    mbarrier_init(&s.barrier, 1);
    mbarrier_arrive(&s.barrier);
    mbarrier_wait(&s.barrier, 0);
  });
  CHECK(events == std::vector<std::string>{"grid test_kernel", "block 0", "thread 0", "read 12",
                                           "write 16", "undefine 16", "read 12", "write 16",
                                           "atomic 4", "fence", "write 8", "atomic 8", "release",
                                           "atomic 8", "acquire", "end 0", "block end",
                                           "grid end"});
}

}  // namespace
}  // namespace convoy::emulator
