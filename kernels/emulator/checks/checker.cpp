#include "kernels/emulator/checks/checker.h"

#include <algorithm>
#include <utility>

#include "kernels/emulator/checks/code_place.h"

namespace convoy::emulator::checks {

BlockCheck& check_of(const Block& block) {
  if (!block.checks) machine::fault(cudaErrorLaunchFailure, "the machine runs without its checks");
  return *static_cast<BlockCheck*>(block.checks);
}

Checker& checker() {
  static Checker& result = *new Checker;
  return result;
}

Checker::Checker() {
  set_memory_observer(&memory_);
}

void Checker::grid_begin(const GridWork& work) {
  const std::lock_guard lock(mutex_);
  auto grid = std::make_unique<GridCheck>();
  grid->first = next_block_;
  grid->blocks = std::uint32_t(work.config.grid.count());
  grid->has_figures = counts_;
  next_block_ += grid->blocks;
  grids_[&work] = std::move(grid);
}

void Checker::grid_end(const GridWork& work) {
  const std::lock_guard lock(mutex_);
  const auto grid = grids_.extract(&work);
  if (grid.mapped()->has_figures) figures_[work.kernel].add(*grid.mapped());
}

void Checker::block_begin(Block& block) {
  static thread_local BlockCheck check;  // its vectors serve one block after the other
  const dim3& extents = block.work->config.grid;
  const std::uint32_t rank =
      block.index.x + extents.x * (block.index.y + extents.y * block.index.z);
  {
    const std::lock_guard lock(mutex_);
    check.grid = grids_.at(block.work).get();
  }
  check.order.begin(check.grid->first, check.grid->blocks, rank, int(block.size));
  check.objects.clear();
  check.shared_states.assign(block.work->config.shared_bytes, ByteState::uninitialised);
  const std::size_t words = check.shared_states.size() / Cells::kWordBytes + 1;
  check.shared_words.assign(words, {});
  if (check.shared_bytes.size() < words * Cells::kWordBytes) {
    check.shared_bytes.resize(words * Cells::kWordBytes);
  }
  check.has_figures = check.grid->has_figures && (rank == 0 || rank == check.grid->blocks / 2);
  check.figures = {};
  block.checks = &check;
}

void Checker::block_end(Block& block) {
  BlockCheck& check = check_of(block);
  if (!check.has_figures) return;
  const std::lock_guard lock(mutex_);
  check.figures.finish(check.grid->sites);
  ++check.grid->figures.sampled_blocks;
}

void Checker::synchronize(Block& block, const ThreadSet& threads, bool whole) {
  BlockOrder& order = check_of(block).order;
  if (whole) return order.block_barrier();
  std::vector<int> ranks;
  threads.each([&](unsigned rank) { ranks.push_back(int(rank)); });
  order.group_barrier(ranks);
}

void Checker::release(Thread& thread, const void* object) {
  BlockCheck& check = check_of(*thread.block);
  merge(check.objects[object], check.order.release(int(thread.rank)));
}

void Checker::acquire(Thread& thread, const void* object) {
  BlockCheck& check = check_of(*thread.block);
  check.order.acquire(int(thread.rank), check.objects[object]);
}

void Checker::read(const void* from, std::size_t bytes, const void* code) {
  check(*machine::current_thread,
        {from, std::uint32_t(bytes), AccessKind::read, false, true, code});
}

void Checker::write(const void* to, std::size_t bytes, const void* code) {
  check(*machine::current_thread, {to, std::uint32_t(bytes), AccessKind::write, false, true, code});
}

void Checker::atomic(const void* at, std::size_t bytes, const void* code) {
  check(*machine::current_thread, {at, std::uint32_t(bytes), AccessKind::atomic, true, true, code});
}

void Checker::undefine(const void* at, std::size_t bytes) {
  const Block& block = *machine::current_thread->block;
  BlockCheck& check = check_of(block);
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(at) - block.shared);
  if (offset >= check.shared_states.size()) return;
  std::fill_n(check.shared_states.begin() + std::ptrdiff_t(offset), bytes,
              ByteState::uninitialised);
}

void FiguresOfKernel::add(const GridCheck& grid) {
  ++sums.launches;
  sums.blocks += grid.blocks;
  sums.sampled_blocks += grid.figures.sampled_blocks;
  sums.bytes_read += grid.figures.bytes_read;
  sums.bytes_written += grid.figures.bytes_written;
  sums.compulsory_read += grid.figures.compulsory_read;
  sums.compulsory_written += grid.figures.compulsory_written;
  for (const auto& [key, site] : grid.sites) checks::add(sites[key], site);
}

void Checker::start_figures() {
  const std::lock_guard lock(mutex_);
  counts_ = true;
  figures_.clear();
}

std::vector<KernelFigures> Checker::take_figures() {
  const std::lock_guard lock(mutex_);
  counts_ = false;
  std::vector<KernelFigures> result;
  std::vector<std::uint32_t> codes;
  for (const auto& [kernel, figures] : figures_) {
    for (const auto& [key, site] : figures.sites) codes.push_back(code_of(key));
  }
  const std::vector<std::string> places = describe_code(codes);
  std::size_t next = 0;
  for (auto& [kernel, figures] : figures_) {
    result.push_back(std::move(figures.sums));
    result.back().kernel = kernel;
    for (auto& [key, site] : figures.sites) {
      site.place = places[next++];
      result.back().sites.push_back(std::move(site));
    }
  }
  figures_.clear();
  return result;
}

}  // namespace convoy::emulator::checks

// In place of those in the plain library, which are weak.
namespace convoy::emulator {

machine::Observer* machine::default_observer() {
  return &checks::checker();
}

bool has_kernel_figures() {
  return true;
}
void start_kernel_figures() {
  checks::checker().start_figures();
}
std::vector<KernelFigures> take_kernel_figures() {
  return checks::checker().take_figures();
}

}  // namespace convoy::emulator
