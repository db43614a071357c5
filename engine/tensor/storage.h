// Memory that tensors share: one block of one device, with a version that every write raises.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/base/context.h"
#include "kernels/base/memory_pool.h"

namespace convoy {

/// Owned by the tensors that refer to it.
class Storage {
 public:
  /// `bytes` of `device`, for work of its current stream; not initialised.
  Storage(const Device& device, std::size_t bytes);

  const Device& device() const { return device_; }
  std::byte* data() const { return static_cast<std::byte*>(block_.data()); }
  std::size_t bytes() const { return bytes_; }

  /// Writes so far: a tensor saved for backward checks that it is unchanged.
  std::uint64_t version() const { return version_; }
  void raise_version() { ++version_; }
  /// Work of another stream uses the memory until `event`.
  void use_until(Event event) { block_.use_until(std::move(event)); }

 private:
  Device device_;
  std::size_t bytes_;
  MemoryPool::Block block_;
  std::uint64_t version_ = 0;
};

}  // namespace convoy
