// What happened before what in a grid: barriers of a block and of a warp as marks, everything finer
// (named barriers, parts of warps, atomics) as clocks of each thread about each other.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace convoy::emulator::checks {

inline constexpr int kLanes = 32;

/// When a thread did something: its block's number (no two blocks of a process share one), the
/// thread, and how often the thread had been ordered after others.
class Stamp {
 public:
  Stamp() = default;
  Stamp(std::uint32_t block, std::uint32_t thread, std::uint32_t clock) {
    set(std::uint64_t{block} << 32 | thread << kClockBits | clock);
  }
  std::uint32_t block() const { return std::uint32_t(get() >> 32); }
  std::uint32_t thread() const { return std::uint32_t(get()) >> kClockBits; }
  std::uint32_t clock() const { return std::uint32_t(get()) & kMaxClock; }
  friend bool operator==(const Stamp& a, const Stamp& b) { return a.get() == b.get(); }

  static constexpr int kClockBits = 22;
  static constexpr std::uint32_t kMaxClock = (1u << kClockBits) - 1;

 private:
  // Moved as one number, for a load that spans two stores waits for both; aligned as a half of it,
  // so that three stamps and what goes with them stay small.
  std::uint64_t get() const {
    std::uint64_t number;
    std::memcpy(&number, halves_, sizeof number);
    return number;
  }
  void set(std::uint64_t number) { std::memcpy(halves_, &number, sizeof number); }

  std::uint32_t halves_[2] = {};
};

/// Per block: the clocks of its threads up to which all that they did is known.
using Row = std::vector<std::uint32_t>;
using Knowledge = std::map<std::uint32_t, std::shared_ptr<const Row>>;

/// Adds what `from` knows to `to`.
void merge(Knowledge& to, const Knowledge& from);

/// The order of a block's threads among each other and after other blocks of its grid.
class BlockOrder {
 public:
  /// Block `first` + `rank` of `threads` threads starts; its grid's `blocks` are numbered from
  /// `first`.
  void begin(std::uint32_t first, std::uint32_t blocks, std::uint32_t rank, int threads);

  Stamp now(int thread) const { return {block_, std::uint32_t(thread), clock_[thread]}; }
  /// Stamps of earlier grids, and those that were never set, say nothing.
  bool is_of_this_grid(Stamp stamp) const { return stamp.block() - first_ < blocks_; }
  /// Whether what was done at `earlier` (of this grid) is done for `thread` now.
  bool is_before(Stamp earlier, int thread) const {
    if (earlier.block() != block_) return is_foreign_before(earlier, thread);
    const std::uint32_t other = earlier.thread();
    if (other == std::uint32_t(thread) || earlier.clock() <= block_mark_[other]) return true;
    if (is_same_warp(int(other), thread) && earlier.clock() <= warp_mark_[other]) return true;
    return is_fine_ && fine_[thread * threads_ + other] >= earlier.clock();
  }

  /// All threads of the block met.
  void block_barrier();
  /// Some threads met: the lanes of a __syncwarp(), the threads of a named barrier.
  void group_barrier(std::span<const int> threads);
  /// What `thread` knows now, for whoever acquires it.
  Knowledge release(int thread);
  /// `thread` learns what others released.
  void acquire(int thread, const Knowledge& knowledge);

 private:
  static bool is_same_warp(int a, int b) { return a / kLanes == b / kLanes; }
  bool is_foreign_before(Stamp earlier, int thread) const;
  bool is_whole_warp(std::span<const int> threads) const;
  void mark_warp(std::span<const int> threads);
  void make_fine();
  void tick(int thread);

  std::uint32_t first_ = 0, blocks_ = 0, block_ = 0;
  int threads_ = 0;
  Row clock_;       // of each thread, from 1
  Row block_mark_;  // clock of each thread at the last barrier of the block
  Row warp_mark_;   // the same for its warp
  bool is_fine_ = false;
  Row fine_;  // threads x threads: what row's thread knows of column's; kept only when needed
  std::map<int, Knowledge> foreign_;  // of other blocks, by thread
};

/// What atomics of a grid have passed on, by address.
using SyncObjects = std::unordered_map<const void*, Knowledge>;

}  // namespace convoy::emulator::checks
