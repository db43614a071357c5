// Runs one block after another on a host thread. A block's threads are fibers that give way only
// where they wait; code that never waits runs as a plain loop on one stack.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "kernels/emulator/fiber.h"
#include "kernels/emulator/machine.h"

namespace convoy::emulator::machine {

/// What all blocks of a grid share.
struct GridRun {
  const GridWork& work;
  MachineOptions options;
};

/// Where a thread waits, for messages.
struct Wait {
  const char* what = "";
  Site site;
  bool lanes = false;  // `detail` is a mask of lanes, else the number of a barrier
  unsigned detail = 0;

  friend bool operator==(const Wait&, const Wait&) = default;
};

/// A copy that a thread has issued and not waited for (async_copy.h).
struct PendingCopy {
  void* to;
  const void* from;
  unsigned bytes, from_bytes;
  unsigned group;
  const void* code;  // where the kernel issued it
};

class BlockRunner {
 public:
  BlockRunner() = default;
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  /// Runs the block; throws DeviceFault, or what else the kernel threw as one.
  void run(const GridRun& grid, uint3 index);

  /// The runner of current_thread.
  static BlockRunner& here();

  // For barriers, warp functions and models, always on behalf of current_thread:

  /// Lets others run until wake() names this thread.
  void wait(const Wait& where);
  /// Threads that wait go on when their turn comes. May name the running thread before its wait().
  void wake(const ThreadSet& threads);
  /// Lets the others run and comes back.
  void yield();

  const GridRun& grid() const { return *grid_; }
  Block& block() { return block_; }
  /// Lanes of the warp that have not ended.
  unsigned alive(unsigned warp) const;

  struct Barrier {
    const char* what = "";
    Site site;
    unsigned expected = 0;  // 0: nobody has come yet
    unsigned arrived = 0;
    unsigned nonzero = 0;  // predicates
    ThreadSet waiting;     // those that came by sync
  };
  struct Collective {
    unsigned mask = 0, arrived = 0;
    const char* what = "";
    Site site;
    std::array<void*, kWarpSize> operands;
  };
  struct BulkCopy {
    void* to;
    const void* from;
    std::size_t bytes;
  };
  struct Phase {  // of an mbarrier
    void* object = nullptr;
    unsigned count = 0;    // arrivals of a phase
    unsigned pending = 0;  // of this phase
    std::int64_t bytes = 0;
    unsigned parity = 0;  // of the phase that is not complete
    ThreadSet waiting;
    std::vector<BulkCopy> copies;  // that have not acted
  };
  struct Copies {
    std::vector<PendingCopy> pending;
    unsigned groups = 0;  // committed so far
  };

  std::array<Barrier, 16> barriers;
  std::array<std::vector<Collective>, kMaxBlockThreads / kWarpSize> collectives;  // by warp
  std::vector<Phase> phases;
  std::vector<Copies> copies;     // by rank
  std::vector<unsigned> nonzero;  // by rank: what the last barrier counted

 private:
  enum class State : std::uint8_t { unstarted, ready, running, waiting, ended };

  enum class Next { nobody, fresh, ready };

  void prepare(const GridRun& grid);
  void make_threads(dim3 extents);
  void begin(uint3 index);
  void order_threads();
  void clear_shared();
  void end();
  void abandon();
  std::uint64_t random();

  static void fiber_main();
  void run_threads_of_fiber();
  void start_next();
  void make_current(unsigned rank);
  void run_thread();
  Next choose();
  void leave(Next next, Fiber& from);
  Fiber& idle_fiber();
  void push_ready(unsigned rank);
  unsigned pop_ready();

  void note_exception(const char* what);
  void note_deadlock();
  std::string describe_waits() const;

  const GridRun* grid_ = nullptr;
  Block block_;
  std::vector<Thread> threads_;
  dim3 extents_{0, 0, 0};
  std::vector<std::byte> shared_;
  std::vector<State> states_;
  std::vector<Wait> waits_;
  std::vector<Fiber*> fiber_of_;  // of threads that wait or are ready
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;  // fibers without a thread
  Fiber* main_ = nullptr;
  Fiber* running_ = nullptr;
  std::vector<unsigned> order_;                   // in which threads start
  std::size_t unstarted_ = 0;                     // first of order_ that has not
  std::array<unsigned, kMaxBlockThreads> ready_;  // a ring
  unsigned ready_begin_ = 0, ready_end_ = 0;
  unsigned ended_ = 0;
  std::exception_ptr failure_;
  std::uint64_t random_state_ = 0;
};

}  // namespace convoy::emulator::machine
