// Memory that tensors share: one block of one device, with a version that every write raises. It
// may be left out: then only the device is known.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/base/buffer.h"
#include "kernels/base/context.h"
#include "kernels/base/memory_pool.h"
#include "kernels/base/shape.h"

namespace convoy {

class Tensor;

/// How values can be made a second time, bit for bit: who saves them for backward may keep this
/// in place of the memory.
struct Remake {
  std::function<Tensor()> make;
  Shape shape;
  LayoutId layout;
  std::uint64_t version = 0;  ///< of the storage, set by it: what was written later is not made
};

/// Owned by the tensors that refer to it.
class Storage {
 public:
  /// `bytes` of `device`, for work of its current stream; not initialised.
  Storage(const Device& device, std::size_t bytes);
  /// Over `memory`, which it keeps: the host's, for a device whose values lie there. `share`: what
  /// that counts in the device's pool.
  Storage(const Device& device, std::shared_ptr<std::byte> memory, std::size_t bytes,
          MemoryPool::Share share = {});
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  /// No memory at all: data() is null for good. Does not open the device.
  explicit Storage(const Device& device) : device_(device) {}

  const Device& device() const { return device_; }
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  bool is_allocated() const { return data_ != nullptr; }

  /// Writes so far: a tensor saved for backward checks that it is unchanged.
  std::uint64_t version() const { return version_; }
  void raise_version() { ++version_; }
  /// The values as they are now, all of them, are what remake.make() gives.
  void offer_remake(Remake remake);
  /// Of the values as they are now; null if nobody offered it.
  std::shared_ptr<const Remake> remake() const;
  /// Work of another stream reads the memory until `event`: it is neither freed nor written before.
  void use_until(const Event& event);
  /// `stream` is about to write: it waits for the reads of other streams.
  void await_readers(Stream& stream);

 private:
  Device device_;
  std::size_t bytes_ = 0;
  MemoryPool::Block block_;            // or
  std::shared_ptr<std::byte> memory_;  // of somebody else
  MemoryPool::Share share_;
  std::byte* data_ = nullptr;
  std::uint64_t version_ = 0;
  std::vector<Event> readers_;
  std::shared_ptr<const Remake> remake_;
};

}  // namespace convoy
