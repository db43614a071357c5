// Memory that two processes of a host see, without a name that could be left behind: a file in
// memory of one process, which others open by (pid, descriptor) through /proc.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace convoy {

/// Where another process finds the memory.
struct SharedMemoryAddress {
  std::int64_t pid = 0;
  std::int64_t descriptor = -1;
  std::uint64_t token = 0;  ///< random; stands at the end of the memory, to tell it from another
  bool operator==(const SharedMemoryAddress&) const = default;
};

/// A mapping of shared memory; unmapped at the end, which others who have it can tell by closed().
class SharedMemory {
 public:
  /// `bytes` of zeros that others may open. `resource` where there is no room.
  static SharedMemory make(std::size_t bytes);
  /// Maps what another process has made; none if it cannot be reached from here.
  static std::optional<SharedMemory> open(const SharedMemoryAddress& address, std::size_t bytes);
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;

  void* data() const { return data_; }
  std::size_t bytes() const;
  const SharedMemoryAddress& address() const { return address_; }
  /// Whether another process has opened it.
  bool opened() const { return tail().opened.load(std::memory_order_acquire) != 0; }
  /// Whether the one who made it has no use for it any more.
  bool closed() const { return tail().closed.load(std::memory_order_acquire) != 0; }
  /// Nobody opens it any more; the mapping stays.
  void close_descriptor();
  /// Takes all pages from the system now, where it can: their first use costs nothing then.
  void populate() const;

 private:
  /// The end of the memory.
  struct Tail {
    std::uint64_t token;
    std::atomic<std::uint64_t> opened, closed;
  };
  SharedMemory(int descriptor, std::size_t bytes);
  Tail& tail() const;

  void* data_ = nullptr;
  std::size_t bytes_ = 0;  // with the tail
  bool made_here_ = false;
  int descriptor_ = -1;
  SharedMemoryAddress address_;
};

}  // namespace convoy
