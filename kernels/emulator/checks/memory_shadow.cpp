#include "kernels/emulator/checks/memory_shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace convoy::emulator::checks {

namespace {

template <class T>
T* reserve(std::size_t count) {
  void* result = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (result == MAP_FAILED) throw std::bad_alloc();
  return static_cast<T*>(result);
}

// Gives whole pages between `first` and `last` back; they read as zero afterwards.
void give_back(void* first, void* last) {
  constexpr std::uintptr_t kPage = 4096;
  const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(first) + kPage - 1) & ~(kPage - 1);
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(last) & ~(kPage - 1);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): page arithmetic
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace

MemoryShadow::Range& MemoryShadow::open_range(int owner) {
  const std::lock_guard lock(mutex_);
  Range& range = storage_[owner];
  if (!range.states) {
    range = {reserve<ByteState>(kRangeBytes), reserve<WordCell>(kRangeBytes / Cells::kWordBytes),
             reserve<Cell>(kRangeBytes)};
    ranges_[owner].store(&range, std::memory_order_release);
  }
  return range;
}

const MemoryShadow::Range* MemoryShadow::range_of(const void* address) const {
  const int owner = owner_of(address);
  return owner == kNoOwner ? nullptr : ranges_[owner].load(std::memory_order_acquire);
}

ByteState* MemoryShadow::states(const void* address) const {
  const Range* range = range_of(address);
  return range ? range->states + offset_of(address) : nullptr;
}

Cells MemoryShadow::cells(const void* address) const {
  const Range* range = range_of(address);
  return range ? Cells(range->words, range->bytes) : Cells();
}

void MemoryShadow::allocated(const Allocation& allocation) {
  Range& range = open_range(allocation.owner);
  const ByteState state =
      allocation.owner == kPinnedOwner ? ByteState::initialised : ByteState::uninitialised;
  std::fill_n(range.states + offset_of(allocation.data), allocation.bytes, state);
}

void MemoryShadow::freed(const Allocation& allocation) {
  Range& range = open_range(allocation.owner);
  const std::size_t offset = offset_of(allocation.data);
  std::fill_n(range.states + offset, allocation.bytes, ByteState::closed);
  const std::size_t end = offset + allocation.bytes;
  give_back(range.words + offset / Cells::kWordBytes, range.words + end / Cells::kWordBytes);
  give_back(range.bytes + offset, range.bytes + end);
}

void MemoryShadow::written(void* target, std::size_t bytes) {
  if (ByteState* states = this->states(target)) {
    std::fill_n(states, bytes, ByteState::initialised);
  }
}

void MemoryShadow::copied(void* target, const void* source, std::size_t bytes) {
  ByteState* to = states(target);
  const ByteState* from = states(source);
  if (!to || owner_of(target) == kPinnedOwner) return;
  if (from) {
    std::memmove(to, from, bytes);
  } else {
    std::fill_n(to, bytes, ByteState::initialised);
  }
}

}  // namespace convoy::emulator::checks
