// The machine that runs blocks: its options, what it knows of a running block and its threads, and
// what may watch it. Kernels see device_language.h; this is for models of instructions, for checks
// and for tests. A namespace of its own keeps these names apart from those of kernels.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/emulator/grid.h"

namespace convoy::emulator::machine {

inline constexpr unsigned kMaxBlockThreads = 1024;
inline constexpr std::size_t kMaxSharedBytes = 227 << 10;
inline constexpr int kMultiprocessors = 4;
inline constexpr unsigned kWarpSize = 32;

/// A place in a source file; as a default argument `Site::here()` it is the caller's.
struct Site {
  const char* file = "";
  int line = 0;

  static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  friend bool operator==(const Site& a, const Site& b);
};
/// "conv2d.cu:12", without folders.
std::string describe(const Site& site);
/// "(x, y, z)".
std::string describe(const uint3& index);

struct Block;

/// A thread of the block that runs. The machine counts for it; `checks` may keep what they like.
struct Thread {
  uint3 index;
  unsigned rank = 0;  ///< in its block, x fastest
  unsigned warp = 0;
  unsigned lane = 0;
  Block* block = nullptr;
  unsigned barriers = 0;     ///< block barriers passed
  unsigned collectives = 0;  ///< warp functions passed
  void* checks = nullptr;    ///< nullptr before each block
  bool exchanges = false;    ///< a warp function works for all its lanes: no code of the kernel
};

/// A block that runs, on one host thread from its start to its end.
struct Block {
  uint3 index;
  const GridWork* work = nullptr;
  std::byte* shared = nullptr;  ///< work->config.shared_bytes of them
  unsigned size = 0;            ///< threads
  Thread* threads = nullptr;    ///< by rank
  unsigned barriers = 0;        ///< completed by all threads of the block
  void* checks = nullptr;       ///< nullptr before each block
};

/// The thread whose code runs on this host thread; nullptr outside kernels. A block's threads take
/// turns on one host thread.
extern constinit thread_local Thread* current_thread [[gnu::tls_model("initial-exec")]];

/// Threads of a block by rank.
class ThreadSet {
 public:
  void insert(unsigned rank) { words_[rank / 64] |= std::uint64_t{1} << rank % 64; }
  bool contains(unsigned rank) const { return words_[rank / 64] >> rank % 64 & 1; }
  void clear() { words_.fill(0); }
  unsigned count() const {
    int n = 0;
    for (const std::uint64_t word : words_) n += std::popcount(word);
    return static_cast<unsigned>(n);
  }
  /// Lanes of the warp whose first thread is `rank`.
  void insert_lanes(unsigned rank, unsigned mask) {
    words_[rank / 64] |= std::uint64_t{mask} << rank % 64;
  }
  /// Calls use(rank) in ascending order.
  template <class Use>
  void each(Use use) const {
    for (unsigned w = 0; w < words_.size(); ++w) {
      for (std::uint64_t left = words_[w]; left != 0; left &= left - 1) {
        use(w * 64 + static_cast<unsigned>(std::countr_zero(left)));
      }
    }
  }
  /// The same in descending order.
  template <class Use>
  void each_down(Use use) const {
    for (unsigned w = words_.size(); w-- > 0;) {
      for (std::uint64_t left = words_[w]; left != 0;) {
        const auto bit = static_cast<unsigned>(63 - std::countl_zero(left));
        left &= ~(std::uint64_t{1} << bit);
        use(w * 64 + bit);
      }
    }
  }

 private:
  std::array<std::uint64_t, kMaxBlockThreads / 64> words_ = {};
};

/// Is told what happens in blocks. All calls come on the host thread of the block, those that name
/// no block on behalf of current_thread; those of different blocks come at the same time.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  virtual void grid_begin(const GridWork&) {}
  virtual void grid_end(const GridWork&) {}
  /// Shared memory is 0xFF by now.
  virtual void block_begin(Block&) {}
  /// Not called for a block that failed.
  virtual void block_end(Block&) {}
  virtual void thread_begin(Thread&) {}
  virtual void thread_end(Thread&) {}
  /// All that `threads` did before happens before all that they do next. `whole`: a barrier of the
  /// whole block, else a named barrier or a warp function.
  virtual void synchronize(Block&, const ThreadSet&, bool whole) { static_cast<void>(whole); }
  /// What the thread did happens before what follows an acquire() of the same object: arrivals at
  /// and waits for mbarriers and named barriers.
  virtual void release(Thread&, const void* object) { static_cast<void>(object); }
  virtual void acquire(Thread&, const void* object) { static_cast<void>(object); }
  virtual void fence(Thread&) {}
  /// Memory that models of instructions touch; compiled code is seen by other means.
  /// `code` is where the kernel goes on.
  virtual void read(const void*, std::size_t, const void* code) { static_cast<void>(code); }
  virtual void write(const void*, std::size_t, const void* code) { static_cast<void>(code); }
  virtual void atomic(const void*, std::size_t, const void* code) { static_cast<void>(code); }
  /// What memory holds is undefined from now on (it is 0xFF) until it is written.
  virtual void undefine(const void*, std::size_t) {}
};

/// In which order a block's threads and a grid's blocks run; correct kernels do not depend on it.
enum class Order { forward, reverse, random };

/// When asynchronous copies act: at once, or at the last moment that their waits allow, reading
/// their sources only then.
enum class Lateness { eager, late };

struct MachineOptions {
  Order order = Order::forward;
  std::uint64_t seed = 1;  ///< of Order::random
  int workers = 0;         ///< host threads that run blocks; 0: the cores allowed, at most 16
  Lateness lateness = Lateness::eager;
  bool float_atomics = false;    ///< allows atomics on floats, whose sums depend on the order
  Observer* observer = nullptr;  ///< null: default_observer()
};

/// Options from a list such as "order=reverse,copies=late,seed=3,workers=1"; `usage` if it is
/// wrong.
MachineOptions parse_machine_options(std::string_view text);
/// Options of the grids that start from now on; at first those in the variable CONVOY_EMULATOR.
MachineOptions machine_options();
void set_machine_options(const MachineOptions& options);

/// Watches where the options name no other: the checks, in programs that are built with them, else
/// null.
Observer* default_observer();

/// Sets options for as long as it lives.
class MachineOptionsScope {
 public:
  explicit MachineOptionsScope(const MachineOptions& options) : before_(machine_options()) {
    set_machine_options(options);
  }
  ~MachineOptionsScope() { set_machine_options(before_); }
  MachineOptionsScope(const MachineOptionsScope&) = delete;
  MachineOptionsScope& operator=(const MachineOptionsScope&) = delete;

 private:
  MachineOptions before_;
};

/// The running thread; `internal` outside kernels, where `what` has no meaning.
Thread& running_thread(const char* what);
/// Options of the grid that runs here.
const MachineOptions& running_options();

/// Ends the running block: throws DeviceFault whose text names kernel, block and thread.
[[noreturn]] void fault(cudaError_t error, const std::string& text);

// For models of instructions: faults that name the instruction, `what`.
/// The bytes lie in the block's shared memory, at a multiple of `alignment`.
void check_shared(const char* what, const void* at, std::size_t bytes, std::size_t alignment);
void check_aligned(const char* what, const void* at, std::size_t alignment);
/// Fills memory with 0xFF and tells the observer.
void undefine(void* at, std::size_t bytes);

/// Empty for a launch within the limits of the device, else what exceeds which limit.
std::string launch_refusal(const LaunchConfig& config);

/// Name of the kernel at this address, without parameters, from the program's symbols:
/// "convoy::emulator::scale_kernel<float>"; "kernel at FILE+0x12" where the symbols are stripped.
const std::string& kernel_name(const void* address);

}  // namespace convoy::emulator::machine

namespace convoy::emulator::checks {

/// Models of instructions call these for memory that they touch on behalf of the running thread.
/// `code` as it is left out is where the caller returns to: in the kernel, if kernels call it.
void read(const void* from, std::size_t bytes, const void* code = __builtin_return_address(0));
void write(const void* to, std::size_t bytes, const void* code = __builtin_return_address(0));
void atomic(const void* at, std::size_t bytes, const void* code = __builtin_return_address(0));

}  // namespace convoy::emulator::checks
