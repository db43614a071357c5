// Memory that workers of a host read where it lies in another one, so that collectives need no
// slots between them. What one makes, others find by (process, descriptor) and an offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/shared_memory.h"

namespace convoy {

/// Where another worker finds values.
struct HostAddress {
  SharedMemoryAddress memory;
  std::uint64_t memory_bytes = 0;
  std::uint64_t offset = 0;
};

/// The memory that the workers of one process have made, and what they have opened of others.
/// Thread-safe.
class HostMemory {
 public:
  /// `bytes` of zeros on a page, all of it there; others find them as long as the pointer lives,
  /// and what they have opened by then stays. `resource` where there is no room.
  std::shared_ptr<std::byte> make(std::size_t bytes);
  /// Of `bytes` at `data`; none unless they lie in memory that make() gave.
  std::optional<HostAddress> find(const void* data, std::size_t bytes) const;
  /// The values at `address`; null if this process cannot reach them.
  std::shared_ptr<const std::byte> open(const HostAddress& address);

 private:
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<SharedMemory>> own_;
  std::vector<std::shared_ptr<SharedMemory>> opened_;  // those whose makers are done with them go
};

}  // namespace convoy
