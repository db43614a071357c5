#include "comm/host_memory.h"

#include <utility>

namespace convoy {

std::shared_ptr<std::byte> HostMemory::make(std::size_t bytes) {
  auto memory = std::make_shared<SharedMemory>(SharedMemory::make(bytes));
  memory->populate();
  const std::lock_guard lock(mutex_);
  std::erase_if(own_, [](const auto& known) { return known.expired(); });
  own_.push_back(memory);
  auto* data = static_cast<std::byte*>(memory->data());
  return {std::move(memory), data};
}

std::optional<HostAddress> HostMemory::find(const void* data, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  for (const auto& known : own_) {
    const auto memory = known.lock();
    if (!memory) continue;
    const std::ptrdiff_t offset =
        static_cast<const std::byte*>(data) - static_cast<const std::byte*>(memory->data());
    if (offset < 0 || static_cast<std::size_t>(offset) + bytes > memory->bytes()) continue;
    return HostAddress{memory->address(), memory->bytes(), static_cast<std::uint64_t>(offset)};
  }
  return std::nullopt;
}

std::shared_ptr<const std::byte> HostMemory::open(const HostAddress& address) {
  const auto place = [&](std::shared_ptr<SharedMemory> memory) {
    const auto* data = static_cast<const std::byte*>(memory->data()) + address.offset;
    return std::shared_ptr<const std::byte>(std::move(memory), data);
  };
  const std::lock_guard lock(mutex_);
  for (const auto& known : own_) {
    auto memory = known.lock();
    if (memory && memory->address() == address.memory) return place(std::move(memory));
  }
  for (const auto& memory : opened_) {
    if (memory->address() == address.memory) return place(memory);
  }
  std::erase_if(opened_, [](const auto& memory) { return memory->closed(); });
  auto memory = SharedMemory::open(address.memory, address.memory_bytes);
  if (!memory) return nullptr;
  opened_.push_back(std::make_shared<SharedMemory>(std::move(*memory)));
  return place(opened_.back());
}

}  // namespace convoy
