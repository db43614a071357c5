// The checks of running kernels. Their hooks see each load, store and atomic of code that is
// compiled with -fsanitize=thread; models of instructions and the machine's barriers report by
// Observer, copies and allocations by MemoryObserver. What is wrong ends the block with a fault.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/emulator/checks/figures.h"
#include "kernels/emulator/checks/memory_shadow.h"
#include "kernels/emulator/checks/order.h"
#include "kernels/emulator/checks/shadow.h"
#include "kernels/emulator/machine.h"

namespace convoy::emulator::checks {

using machine::Block;
using machine::Thread;
using machine::ThreadSet;

/// A grid that runs.
struct GridCheck {
  std::uint32_t first = 0;  ///< number of its first block
  std::uint32_t blocks = 0;
  SyncObjects objects;  // in global memory
  bool has_figures = false;
  KernelFigures figures;                       // without sites
  std::map<std::uint64_t, SiteFigures> sites;  // by instruction_key()
};

/// A block that runs.
struct BlockCheck {
  GridCheck* grid = nullptr;
  BlockOrder order;
  SyncObjects objects;  // in shared memory
  std::vector<ByteState> shared_states;
  std::vector<WordCell> shared_words;
  std::vector<Cell> shared_bytes;
  bool has_figures = false;
  BlockFigures figures;
};

/// Of a block that runs with checks.
BlockCheck& check_of(const Block& block);

/// One load, store or atomic of the running thread.
struct Use {
  const void* address;
  std::uint32_t bytes;
  AccessKind kind;
  bool is_atomic;    ///< orders the thread after others that use the same address
  bool is_one;       ///< moves as one piece: its address must be a multiple of its size
  const void* code;  ///< return address in the kernel
};

/// All launches of a kernel.
struct FiguresOfKernel {
  KernelFigures sums;
  std::map<std::uint64_t, SiteFigures> sites;
  void add(const GridCheck& grid);
};

/// Of the process. Grids may run at the same time; what they share is locked.
class Checker : public machine::Observer {
 public:
  Checker();

  void grid_begin(const GridWork& work) override;
  void grid_end(const GridWork& work) override;
  void block_begin(Block& block) override;
  void block_end(Block& block) override;
  void synchronize(Block& block, const ThreadSet& threads, bool whole) override;
  void release(Thread& thread, const void* object) override;
  void acquire(Thread& thread, const void* object) override;
  void read(const void* from, std::size_t bytes, const void* code) override;
  void write(const void* to, std::size_t bytes, const void* code) override;
  void atomic(const void* at, std::size_t bytes, const void* code) override;

  void undefine(const void* at, std::size_t bytes) override;

  /// Checks and notes `use` of `thread`; throws DeviceFault if it is wrong.
  void check(Thread& thread, const Use& use);

  void start_figures();
  std::vector<KernelFigures> take_figures();

 private:
  static void check_shared(BlockCheck& check, Thread& thread, const Use& use);
  void check_global(BlockCheck& check, Thread& thread, const Use& use);
  static void count_request(BlockCheck& check, const Thread& thread, const Use& use,
                            bool is_shared);

  std::mutex mutex_;
  std::uint32_t next_block_ = 1;
  std::map<const GridWork*, std::unique_ptr<GridCheck>> grids_;
  MemoryShadow memory_;
  bool counts_ = false;
  std::map<std::string, FiguresOfKernel> figures_;
};

/// Of this process; never destroyed.
Checker& checker();

}  // namespace convoy::emulator::checks
