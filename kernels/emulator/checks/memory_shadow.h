// Shadows of emulated memory: for each byte, whether it may be touched, whether it was ever
// written, and who touched it last. Reserved as addresses, a page becomes real when it is touched.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "kernels/emulator/checks/shadow.h"
#include "kernels/emulator/device_memory.h"

namespace convoy::emulator::checks {

enum class ByteState : std::uint8_t { closed, uninitialised, initialised };

/// Shadows of all owners' ranges. Pinned memory counts as initialised: the host writes it unseen.
class MemoryShadow : public MemoryObserver {
 public:
  /// Where `address` lies in its owner's range.
  static std::size_t offset_of(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) & (kRangeBytes - 1);
  }

  void allocated(const Allocation& allocation) override;
  void freed(const Allocation& allocation) override;
  void written(void* target, std::size_t bytes) override;
  void copied(void* target, const void* source, std::size_t bytes) override;

  /// Of an address that has an owner of whom something was allocated, else null: the states from
  /// there on, and the cells of the owner's whole range.
  ByteState* states(const void* address) const;
  Cells cells(const void* address) const;

 private:
  struct Range {
    ByteState* states = nullptr;
    WordCell* words = nullptr;
    Cell* bytes = nullptr;
  };
  Range& open_range(int owner);
  const Range* range_of(const void* address) const;

  std::mutex mutex_;
  std::array<std::atomic<const Range*>, kPinnedOwner + 1> ranges_{};
  std::array<Range, kPinnedOwner + 1> storage_{};
};

}  // namespace convoy::emulator::checks
