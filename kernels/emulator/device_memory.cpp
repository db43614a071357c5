#include "kernels/emulator/device_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <new>

namespace convoy::emulator {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kFront = kAllocationAlignment;  // a red zone that keeps the alignment
// Addresses of quarantined allocations cost no memory, only a place in the map.
constexpr std::size_t kMostQuarantined = 4096;
constexpr std::size_t kMostQuarantinedBytes = kRangeBytes / 4;

std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

// Owner and range by pointer >> 36, for the 48 bits of a user's address.
struct Directory {
  std::array<std::atomic<std::int8_t>, 4096> owners;
  std::array<std::atomic<MemoryRange*>, kMostDevices + 1> ranges{};
  std::atomic<MemoryObserver*> observer{nullptr};
  Directory() {
    for (auto& owner : owners) owner = kNoOwner;
  }
};

Directory& directory() {
  static auto* const result = new Directory;  // emulated devices live as long as the process
  return *result;
}

std::byte* reserve_range() {
  void* wide =
      mmap(nullptr, 2 * kRangeBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (wide == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(wide);
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t before = round_up(address, kRangeBytes) - address;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + kRangeBytes, kRangeBytes - before);
  return begin + before;
}

bool is_fresh(const std::byte* first, std::size_t bytes) {
  return std::all_of(first, first + bytes,
                     [](std::byte each) { return each == std::byte{kFreshByte}; });
}

}  // namespace

int owner_of(const void* pointer) {
  const auto index = reinterpret_cast<std::uintptr_t>(pointer) >> kRangeBits;
  const Directory& all = directory();
  return index < all.owners.size() ? all.owners[index].load(std::memory_order_acquire) : kNoOwner;
}

std::optional<Allocation> lookup(const void* pointer) {
  const int owner = owner_of(pointer);
  if (owner == kNoOwner) return std::nullopt;
  return directory().ranges[owner].load(std::memory_order_acquire)->find(pointer);
}

std::string owner_name(int owner) {
  if (owner == kPinnedOwner) return "pinned memory";
  return owner == kNoOwner ? "host memory" : fmt::format("emu:{}", owner);
}

std::string describe_pointer(const void* pointer) {
  const int owner = owner_of(pointer);
  if (owner == kNoOwner) return owner_name(owner);
  const std::optional<Allocation> found = lookup(pointer);
  if (!found) return "no allocation of " + owner_name(owner);
  const auto offset = static_cast<const std::byte*>(pointer) - found->data;
  const auto size = static_cast<std::ptrdiff_t>(found->bytes);
  std::string place = fmt::format("byte {} of", offset);
  if (offset < 0) place = fmt::format("{} bytes before", -offset);
  if (offset >= size) place = fmt::format("{} bytes past the end of", offset - size);
  return fmt::format("{} {}allocation {} of {} ({} bytes)", place, found->freed ? "freed " : "",
                     found->number, owner_name(owner), found->bytes);
}

void set_memory_observer(MemoryObserver* observer) {
  directory().observer = observer;
}

MemoryObserver* memory_observer() {
  return directory().observer.load(std::memory_order_acquire);
}

MemoryRange::MemoryRange(int owner, std::size_t capacity)
    : owner_(owner), base_(reserve_range()), capacity_(capacity) {
  // The first page stays closed: what runs off the range's front meets nothing.
  free_[kPage] = kRangeBytes - 2 * kPage;
  Directory& all = directory();
  all.ranges[owner] = this;
  all.owners[reinterpret_cast<std::uintptr_t>(base_) >> kRangeBits] =
      static_cast<std::int8_t>(owner);
}

void* MemoryRange::allocate(std::size_t bytes) {
  std::unique_lock lock(mutex_);
  if (bytes > kRangeBytes || in_use_ + bytes > capacity_) return nullptr;
  const std::size_t span = round_up(kFront + bytes + kRedZone, kPage);
  const std::optional<std::size_t> offset = take_span(span);
  if (!offset) return nullptr;
  std::byte* const start = base_ + *offset;
  if (mprotect(start, span, PROT_READ | PROT_WRITE) != 0) {
    return_span(*offset, span);
    return nullptr;
  }
  std::memset(start, kFreshByte, span);
  const Allocation made{start + kFront, bytes, owner_, false, ++allocations_};
  spans_[*offset] = {span, made};
  in_use_ += bytes;
  lock.unlock();
  if (MemoryObserver* observer = memory_observer()) observer->allocated(made);
  return made.data;
}

FreeResult MemoryRange::free(void* pointer) {
  std::unique_lock lock(mutex_);
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(pointer) - base_) - kFront;
  auto found = spans_.find(offset);
  if (found == spans_.end()) return FreeResult::not_an_allocation;
  Span& span = found->second;
  if (span.allocation.freed) return FreeResult::already_freed;
  std::byte* const start = base_ + offset;
  const std::size_t used = kFront + span.allocation.bytes;
  const bool intact = is_fresh(start, kFront) && is_fresh(start + used, span.bytes - used);
  if (MemoryObserver* observer = memory_observer()) observer->freed(span.allocation);
  span.allocation.freed = true;
  in_use_ -= span.allocation.bytes;
  madvise(start, span.bytes, MADV_DONTNEED);
  mprotect(start, span.bytes, PROT_NONE);
  quarantine_.push_back(offset);
  quarantined_ += span.bytes;
  shrink_quarantine();
  return intact ? FreeResult::done : FreeResult::red_zone_damaged;
}

void MemoryRange::shrink_quarantine() {
  if (quarantine_.size() <= kMostQuarantined && quarantined_ <= kMostQuarantinedBytes) return;
  // Half of it at a time: taking from the front of a vector is not free.
  const std::size_t going = (quarantine_.size() + 1) / 2;
  for (std::size_t i = 0; i < going; ++i) {
    auto found = spans_.find(quarantine_[i]);
    quarantined_ -= found->second.bytes;
    return_span(found->first, found->second.bytes);
    spans_.erase(found);
  }
  quarantine_.erase(quarantine_.begin(), quarantine_.begin() + static_cast<std::ptrdiff_t>(going));
}

std::optional<std::size_t> MemoryRange::take_span(std::size_t bytes) {
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->second < bytes) continue;
    const auto [offset, size] = *it;
    free_.erase(it);
    if (size > bytes) free_[offset + bytes] = size - bytes;
    return offset;
  }
  return std::nullopt;
}

void MemoryRange::return_span(std::size_t offset, std::size_t bytes) {
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && offset + bytes == next->first) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      previous->second += bytes;
      return;
    }
  }
  free_[offset] = bytes;
}

std::optional<Allocation> MemoryRange::find(const void* pointer) const {
  std::shared_lock lock(mutex_);
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - base_);
  auto after = spans_.upper_bound(offset);
  if (after == spans_.begin()) return std::nullopt;
  const auto& [start, span] = *std::prev(after);
  if (offset >= start + span.bytes) return std::nullopt;
  return span.allocation;
}

void MemoryRange::set_capacity(std::size_t bytes) {
  std::lock_guard lock(mutex_);
  capacity_ = bytes;
}

std::size_t MemoryRange::capacity() const {
  std::shared_lock lock(mutex_);
  return capacity_;
}

std::size_t MemoryRange::in_use() const {
  std::shared_lock lock(mutex_);
  return in_use_;
}

}  // namespace convoy::emulator
