#include "kernels/emulator/block_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/emulator/device_language.h"

namespace convoy::emulator::machine {

namespace {

constexpr std::size_t kRedZone = 128;
constexpr std::size_t kSharedAlignment = 1024;
constexpr auto kUnset = std::byte{0xFF};
constexpr auto kRed = std::byte{0xA5};

[[gnu::tls_model("initial-exec")]] constinit thread_local BlockRunner* runner_here = nullptr;

std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

}  // namespace

BlockRunner::~BlockRunner() = default;

BlockRunner& BlockRunner::here() {
  return *runner_here;
}

void BlockRunner::run(const GridRun& grid, uint3 index) {
  Fiber main;
  main_ = &main;
  runner_here = this;
  prepare(grid);
  begin(index);
  leave(choose(), main);
  if (failure_ == nullptr && ended_ < block_.size) note_deadlock();
  if (failure_ == nullptr) end();
  current_thread = nullptr;
  runner_here = nullptr;
  if (failure_ == nullptr) return;
  abandon();
  std::rethrow_exception(std::exchange(failure_, nullptr));
}

void BlockRunner::prepare(const GridRun& grid) {
  grid_ = &grid;
  const LaunchConfig& config = grid.work.config;
  if (!(config.block == extents_)) make_threads(config.block);
  const std::size_t bytes = config.shared_bytes + 2 * kRedZone + kSharedAlignment;
  if (shared_.size() < bytes) shared_.resize(bytes);
  void* place = shared_.data() + kRedZone;
  std::size_t space = shared_.size() - kRedZone;
  block_.shared = static_cast<std::byte*>(
      std::align(kSharedAlignment, config.shared_bytes + kRedZone, place, space));
  block_.work = &grid.work;
  gridDim = config.grid;
  blockDim = config.block;
}

void BlockRunner::make_threads(dim3 extents) {
  extents_ = extents;
  block_.size = static_cast<unsigned>(extents.count());
  threads_.assign(block_.size, {});
  block_.threads = threads_.data();
  waits_.resize(block_.size);
  fiber_of_.resize(block_.size);
  copies.resize(block_.size);
  nonzero.resize(block_.size);
  order_.resize(block_.size);
  for (unsigned rank = 0; rank < block_.size; ++rank) {
    Thread& thread = threads_[rank];
    thread.rank = rank;
    thread.warp = rank / kWarpSize;
    thread.lane = rank % kWarpSize;
    thread.block = &block_;
    thread.index = {rank % extents.x, rank / extents.x % extents.y, rank / extents.x / extents.y};
  }
}

void BlockRunner::begin(uint3 index) {
  const dim3 grid = grid_->work.config.grid;
  block_.index = blockIdx = index;
  block_.barriers = 0;
  block_.checks = nullptr;
  random_state_ =
      mix(grid_->options.seed ^
          mix(index.x + std::uint64_t{grid.x} * (index.y + std::uint64_t{grid.y} * index.z)));
  states_.assign(block_.size, State::unstarted);
  for (Thread& thread : threads_) {
    thread.barriers = thread.collectives = 0;
    thread.checks = nullptr;
  }
  barriers.fill({});
  for (auto& warp : collectives) warp.clear();
  phases.clear();
  order_threads();
  ready_begin_ = ready_end_ = ended_ = 0;
  clear_shared();
  if (Observer* observer = grid_->options.observer) observer->block_begin(block_);
}

void BlockRunner::order_threads() {
  unstarted_ = 0;
  for (unsigned i = 0; i < block_.size; ++i) {
    order_[i] = grid_->options.order == Order::reverse ? block_.size - 1 - i : i;
  }
  if (grid_->options.order != Order::random) return;
  for (unsigned i = block_.size; i > 1; --i) std::swap(order_[i - 1], order_[random() % i]);
}

std::uint64_t BlockRunner::random() {
  return mix(random_state_++);
}

void BlockRunner::clear_shared() {
  std::byte* shared = block_.shared;
  const std::size_t bytes = grid_->work.config.shared_bytes;
  std::fill(shared - kRedZone, shared, kRed);
  std::fill(shared, shared + bytes, kUnset);
  std::fill(shared + bytes, shared + bytes + kRedZone, kRed);
}

void BlockRunner::end() {
  const std::byte* shared = block_.shared;
  const std::size_t bytes = grid_->work.config.shared_bytes;
  const auto whole = [](const std::byte* zone) {
    return std::all_of(zone, zone + kRedZone, [](std::byte b) { return b == kRed; });
  };
  try {
    if (!whole(shared - kRedZone)) fault(cudaErrorIllegalAddress, "wrote before shared memory");
    if (!whole(shared + bytes)) {
      fault(cudaErrorIllegalAddress,
            fmt::format("wrote past the {} bytes of shared memory", bytes));
    }
    if (Observer* observer = grid_->options.observer) observer->block_end(block_);
  } catch (const DeviceFault&) {
    failure_ = std::current_exception();
  }
}

// Whatever the fibers were doing is forgotten; kernels own nothing.
void BlockRunner::abandon() {
  idle_.clear();
  for (const auto& fiber : fibers_) {
    fiber->restart();
    idle_.push_back(fiber.get());
  }
  for (Copies& of_thread : copies) of_thread = {};
}

void BlockRunner::fiber_main() {
  Fiber::entered();
  here().run_threads_of_fiber();
}

// One thread after another on the same stack, as long as each one ends without a wait.
void BlockRunner::run_threads_of_fiber() {
  Fiber* const fiber = running_;
  for (;;) {
    start_next();
    run_thread();
    const Next next = choose();
    if (next == Next::fresh) continue;
    idle_.push_back(fiber);
    leave(next, *fiber);
  }
}

void BlockRunner::start_next() {
  const unsigned rank = order_[unstarted_++];
  make_current(rank);
  copies[rank].pending.clear();
  copies[rank].groups = 0;
}

void BlockRunner::make_current(unsigned rank) {
  current_thread = &threads_[rank];
  threadIdx = current_thread->index;
  states_[rank] = State::running;
}

void BlockRunner::run_thread() {
  Observer* observer = grid_->options.observer;
  try {
    if (observer != nullptr) observer->thread_begin(*current_thread);
    grid_->work.thread();
    if (observer != nullptr) observer->thread_end(*current_thread);
  } catch (const DeviceFault&) {
    failure_ = std::current_exception();
  } catch (const std::exception& error) {
    note_exception(error.what());
  } catch (...) {
    note_exception("of unknown type");
  }
  states_[current_thread->rank] = State::ended;
  ++ended_;
}

void BlockRunner::note_exception(const char* what) {
  try {
    fault(cudaErrorLaunchFailure, fmt::format("exception: {}", what));
  } catch (const DeviceFault&) {
    failure_ = std::current_exception();
  }
}

// Threads that were woken come before new ones, so that few stacks are in use; a random order
// mixes them.
BlockRunner::Next BlockRunner::choose() {
  if (failure_ != nullptr) return Next::nobody;
  const bool fresh = unstarted_ < order_.size();
  const bool ready = ready_begin_ != ready_end_;
  if (fresh && ready && grid_->options.order == Order::random) {
    return random() % 2 == 0 ? Next::fresh : Next::ready;
  }
  return ready ? Next::ready : fresh ? Next::fresh : Next::nobody;
}

void BlockRunner::leave(Next next, Fiber& from) {
  Fiber* to = main_;
  if (next == Next::ready) {
    const unsigned rank = pop_ready();
    to = fiber_of_[rank];
    make_current(rank);
  } else if (next == Next::fresh) {
    to = &idle_fiber();
  }
  running_ = to;
  if (to != &from) from.switch_to(*to);
}

Fiber& BlockRunner::idle_fiber() {
  if (idle_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>(fiber_main, static_cast<unsigned>(fibers_.size())));
    return *fibers_.back();
  }
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  return *fiber;
}

void BlockRunner::push_ready(unsigned rank) {
  states_[rank] = State::ready;
  ready_[ready_end_++ % kMaxBlockThreads] = rank;
}

unsigned BlockRunner::pop_ready() {
  unsigned& first = ready_[ready_begin_ % kMaxBlockThreads];
  if (grid_->options.order == Order::random) {
    const auto count = ready_end_ - ready_begin_;
    std::swap(first, ready_[(ready_begin_ + random() % count) % kMaxBlockThreads]);
  }
  ++ready_begin_;
  return first;
}

void BlockRunner::wait(const Wait& where) {
  const unsigned rank = current_thread->rank;
  waits_[rank] = where;
  if (states_[rank] != State::ready) states_[rank] = State::waiting;
  fiber_of_[rank] = running_;
  leave(choose(), *running_);
}

void BlockRunner::wake(const ThreadSet& threads) {
  const auto push = [this](unsigned rank) { push_ready(rank); };
  if (grid_->options.order == Order::reverse) {
    threads.each_down(push);
  } else {
    threads.each(push);
  }
}

void BlockRunner::yield() {
  const unsigned rank = current_thread->rank;
  push_ready(rank);
  fiber_of_[rank] = running_;
  leave(unstarted_ < order_.size() ? Next::fresh : Next::ready, *running_);
}

unsigned BlockRunner::alive(unsigned warp) const {
  unsigned lanes = 0;
  const unsigned end = std::min(block_.size, (warp + 1) * kWarpSize);
  for (unsigned rank = warp * kWarpSize; rank < end; ++rank) {
    if (states_[rank] != State::ended) lanes |= 1u << rank % kWarpSize;
  }
  return lanes;
}

void BlockRunner::note_deadlock() {
  const auto first = std::find(states_.begin(), states_.end(), State::waiting);
  current_thread = &threads_[static_cast<std::size_t>(first - states_.begin())];
  try {
    fault(cudaErrorLaunchTimeout, fmt::format("deadlock: {} done, {} waiting: {}", ended_,
                                              block_.size - ended_, describe_waits()));
  } catch (const DeviceFault&) {
    failure_ = std::current_exception();
  }
}

// Threads that wait for the same thing are counted together.
std::string BlockRunner::describe_waits() const {
  struct Group {
    const Wait* wait;
    unsigned first, count;
  };
  std::vector<Group> groups;
  for (unsigned rank = 0; rank < block_.size; ++rank) {
    if (states_[rank] != State::waiting) continue;
    const Wait& wait = waits_[rank];
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return *group.wait == wait && (!wait.lanes || group.first / kWarpSize == rank / kWarpSize);
    });
    if (same == groups.end()) {
      groups.push_back({&wait, rank, 1});
    } else {
      ++same->count;
    }
  }
  std::string all;
  for (const Group& group : groups) {
    if (!all.empty()) all += "; ";
    all += fmt::format("{} in {} at {}", group.count, group.wait->what, describe(group.wait->site));
    if (group.wait->lanes) {
      all += fmt::format(" of warp {} for lanes {:#010x}", group.first / kWarpSize,
                         group.wait->detail);
    } else if (group.wait->detail != 0) {
      all += fmt::format(" number {}", group.wait->detail);
    }
    all += fmt::format(", first thread {}", describe(threads_[group.first].index));
  }
  return all;
}

}  // namespace convoy::emulator::machine
