// Memory of emulated devices, and pinned host memory: each owner has a reserved address range of
// 64 GB aligned to 64 GB, so that pointer >> 36 names it. Nothing but live allocations can be
// touched: the rest of a range is closed.
//
//     red zone 128+ | data, aligned to 256 | red zone 128+        0xFF when it is handed out
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

namespace convoy::emulator {

inline constexpr int kMostDevices = 64;
/// Owner of pinned host memory, beside the devices 0..kMostDevices-1.
inline constexpr int kPinnedOwner = kMostDevices;
inline constexpr int kNoOwner = -1;

inline constexpr std::size_t kRedZone = 128;
inline constexpr std::size_t kAllocationAlignment = 256;
inline constexpr unsigned char kFreshByte = 0xFF;
inline constexpr int kRangeBits = 36;
inline constexpr std::size_t kRangeBytes = std::size_t{1} << kRangeBits;

/// Memory that was handed out; freed allocations are remembered while they lie in quarantine.
struct Allocation {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  int owner = kNoOwner;
  bool freed = false;
  std::uint64_t number = 0;  ///< counts the allocations of the owner, from 1
};

/// The device whose address range holds `pointer`, kPinnedOwner, or kNoOwner for memory of the
/// host. A table look-up.
int owner_of(const void* pointer);

/// The allocation, live or in quarantine, whose data or red zones hold `pointer`. Thread-safe.
std::optional<Allocation> lookup(const void* pointer);

/// "emu:1", "pinned memory", "host memory".
std::string owner_name(int owner);

/// "allocation 3 of emu:0 (4096 bytes)", and where in or near it `pointer` lies: for messages.
std::string describe_pointer(const void* pointer);

/// Told of what happens to emulated memory outside kernels: for checks that keep shadows of it.
/// Calls come from any thread.
struct MemoryObserver {
  virtual ~MemoryObserver() = default;
  virtual void allocated(const Allocation& allocation) = 0;
  /// Before the memory is closed.
  virtual void freed(const Allocation& allocation) = 0;
  /// A copy from the host or a memset has run.
  virtual void written(void* target, std::size_t bytes) = 0;
  /// A copy between emulated memories has run.
  virtual void copied(void* target, const void* source, std::size_t bytes) = 0;
};

/// Null for none. The observer must live for ever.
void set_memory_observer(MemoryObserver* observer);
MemoryObserver* memory_observer();

/// What a free found wrong.
enum class FreeResult { done, not_an_allocation, already_freed, red_zone_damaged };

/// One owner's range.
class MemoryRange {
 public:
  /// Reserves the addresses; throws std::bad_alloc if the system has none.
  MemoryRange(int owner, std::size_t capacity);
  MemoryRange(const MemoryRange&) = delete;
  MemoryRange& operator=(const MemoryRange&) = delete;

  /// Null if the capacity is used up.
  void* allocate(std::size_t bytes);
  /// Moves the allocation that starts at `pointer` into quarantine.
  FreeResult free(void* pointer);
  std::optional<Allocation> find(const void* pointer) const;

  void set_capacity(std::size_t bytes);
  std::size_t capacity() const;
  std::size_t in_use() const;

 private:
  struct Span {
    std::size_t bytes;
    Allocation allocation;
  };
  std::optional<std::size_t> take_span(std::size_t bytes);
  void return_span(std::size_t offset, std::size_t bytes);
  void shrink_quarantine();

  const int owner_;
  std::byte* base_ = nullptr;
  mutable std::shared_mutex mutex_;
  std::size_t capacity_;
  std::size_t in_use_ = 0;
  std::uint64_t allocations_ = 0;
  std::map<std::size_t, Span> spans_;        // by offset: live and in quarantine
  std::map<std::size_t, std::size_t> free_;  // offset, bytes
  std::vector<std::size_t> quarantine_;      // offsets, oldest first
  std::size_t quarantined_ = 0;
};

}  // namespace convoy::emulator
