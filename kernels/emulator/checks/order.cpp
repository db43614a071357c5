#include "kernels/emulator/checks/order.h"

#include <algorithm>

#include "kernels/base/error.h"

namespace convoy::emulator::checks {

namespace {

std::shared_ptr<const Row> larger(const std::shared_ptr<const Row>& a,
                                  const std::shared_ptr<const Row>& b) {
  if (a == b) return a;
  Row both = *a;
  for (std::size_t i = 0; i < both.size(); ++i) both[i] = std::max(both[i], (*b)[i]);
  return std::make_shared<const Row>(std::move(both));
}

}  // namespace

void merge(Knowledge& to, const Knowledge& from) {
  for (const auto& [block, row] : from) {
    auto [place, is_new] = to.emplace(block, row);
    if (!is_new) place->second = larger(place->second, row);
  }
}

void BlockOrder::begin(std::uint32_t first, std::uint32_t blocks, std::uint32_t rank, int threads) {
  first_ = first;
  blocks_ = blocks;
  block_ = first + rank;
  threads_ = threads;
  clock_.assign(threads, 1);
  block_mark_.assign(threads, 0);
  warp_mark_.assign(threads, 0);
  is_fine_ = false;
  foreign_.clear();
}

void BlockOrder::tick(int thread) {
  CONVOY_DCHECK(clock_[thread] < Stamp::kMaxClock,
                "a thread of a checked block met others {} times", clock_[thread]);
  ++clock_[thread];
}

void BlockOrder::block_barrier() {
  block_mark_ = clock_;
  for (int thread = 0; thread < threads_; ++thread) tick(thread);
  is_fine_ = false;
  if (foreign_.empty()) return;
  Knowledge all;
  for (const auto& [thread, knowledge] : foreign_) merge(all, knowledge);
  for (int thread = 0; thread < threads_; ++thread) foreign_[thread] = all;
}

bool BlockOrder::is_whole_warp(std::span<const int> threads) const {
  const int first = threads.front() / kLanes * kLanes;
  if (int(threads.size()) != std::min(kLanes, threads_ - first)) return false;
  return std::ranges::all_of(threads, [&](int thread) { return is_same_warp(thread, first); });
}

void BlockOrder::mark_warp(std::span<const int> threads) {
  for (int thread : threads) warp_mark_[thread] = clock_[thread];
}

// From marks to clocks: what lanes know of their warp must go on to those whom they meet.
void BlockOrder::make_fine() {
  if (is_fine_) return;
  is_fine_ = true;
  fine_.assign(std::size_t(threads_) * threads_, 0);
  for (int thread = 0; thread < threads_; ++thread) {
    const int first = thread / kLanes * kLanes;
    for (int other = first; other < std::min(first + kLanes, threads_); ++other) {
      fine_[thread * threads_ + other] = warp_mark_[other];
    }
  }
}

void BlockOrder::group_barrier(std::span<const int> threads) {
  const bool is_warp = is_whole_warp(threads);
  if (is_warp) mark_warp(threads);
  if (!is_warp || is_fine_) {
    make_fine();
    Row known(threads_, 0);
    for (int thread : threads) {
      const std::uint32_t* row = &fine_[thread * threads_];
      for (int other = 0; other < threads_; ++other)
        known[other] = std::max(known[other], row[other]);
    }
    for (int thread : threads) known[thread] = clock_[thread];
    for (int thread : threads) std::ranges::copy(known, &fine_[thread * threads_]);
  }
  for (int thread : threads) tick(thread);
  if (foreign_.empty()) return;
  Knowledge all;
  for (int thread : threads) merge(all, foreign_[thread]);
  for (int thread : threads) foreign_[thread] = all;
}

Knowledge BlockOrder::release(int thread) {
  make_fine();
  Row known = block_mark_;
  const std::uint32_t* row = &fine_[thread * threads_];
  for (int other = 0; other < threads_; ++other) known[other] = std::max(known[other], row[other]);
  known[thread] = clock_[thread];
  tick(thread);
  Knowledge result = foreign_.contains(thread) ? foreign_[thread] : Knowledge{};
  result[block_] = std::make_shared<const Row>(std::move(known));
  return result;
}

void BlockOrder::acquire(int thread, const Knowledge& knowledge) {
  for (const auto& [block, row] : knowledge) {
    if (block != block_) {
      merge(foreign_[thread], {{block, row}});
      continue;
    }
    make_fine();
    std::uint32_t* known = &fine_[thread * threads_];
    for (int other = 0; other < threads_; ++other)
      known[other] = std::max(known[other], (*row)[other]);
  }
}

bool BlockOrder::is_foreign_before(Stamp earlier, int thread) const {
  auto knowledge = foreign_.find(thread);
  if (knowledge == foreign_.end()) return false;
  auto row = knowledge->second.find(earlier.block());
  return row != knowledge->second.end() && (*row->second)[earlier.thread()] >= earlier.clock();
}

}  // namespace convoy::emulator::checks
