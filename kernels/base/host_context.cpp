#include "kernels/base/host_context.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kernels/base/error.h"

namespace convoy {
namespace {

// At `address` if that is free, anywhere for null.
void* map_memory(void* address, std::size_t bytes) {
  const int there = address ? MAP_FIXED_NOREPLACE : 0;
  void* data =
      mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | there, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  // A kernel without that flag takes the address as a wish.
  if (address && data != address) {
    munmap(data, bytes);
    return nullptr;
  }
  madvise(data, bytes, MADV_HUGEPAGE);
  return data;
}

// Mapped memory, not malloc's: it goes back to the system at once, and may use huge pages.
MemoryPool::Source system_memory() {
  MemoryPool::Source source;
  source.take = [](std::size_t bytes) { return map_memory(nullptr, bytes); };
  source.give_back = [](void* data, std::size_t bytes) { munmap(data, bytes); };
  source.take_before = [](void* data, std::size_t bytes) -> void* {
    const auto end = reinterpret_cast<std::uintptr_t>(data);
    return bytes < end ? map_memory(static_cast<std::byte*>(data) - bytes, bytes) : nullptr;
  };
  return source;
}

// OpenMP's threads are started by the stream's, and keep to the same cores.
void keep_to(const Cores& cores, Stream& stream) {
  stream.host_call([cores] { bind_thread(cores); });
}

// What OpenMP would take: OMP_NUM_THREADS (of nested levels the first), else all allowed cores.
int default_threads() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  const long asked = text ? std::strtol(text, nullptr, 10) : 0;
  return asked >= 1 && asked <= 4096 ? static_cast<int>(asked) : allowed_cores();
}

}  // namespace

HostContext::HostContext(Device device, const KernelTable& kernels, std::string description,
                         void (*apply_threads)(int threads))
    : device_(device),
      kernels_(kernels),
      description_(std::move(description)),
      threads_{default_threads(), apply_threads},
      memory_(device, system_memory()),
      default_stream_(std::make_unique<HostStream>(device, memory_, &threads_)) {}

std::unique_ptr<Stream> HostContext::make_stream() {
  auto stream = std::make_unique<HostStream>(device_, memory_, &threads_);
  if (const Cores own = cores(); !own.empty()) keep_to(own, *stream);
  return stream;
}

void HostContext::set_cores(const Cores& cores) {
  const std::lock_guard lock(mutex_);
  if (cores == cores_) return;
  cores_ = cores;
  keep_to(cores.empty() ? allowed_core_list() : cores, *default_stream_);
}

Cores HostContext::cores() const {
  const std::lock_guard lock(mutex_);
  return cores_;
}

void HostContext::set_threads(int threads) {
  CONVOY_CHECK(threads >= 1, "{}: {} threads asked for, at least 1 is needed", to_string(device_),
               threads);
  threads_.count = threads;
}

void HostContext::copy_in(Stream& stream, void* target, const void* source, std::size_t bytes) {
  // The caller may reuse its memory at once, and the host must not wait for the stream.
  const auto* first = static_cast<const std::byte*>(source);
  auto staged = std::make_shared<std::vector<std::byte>>(first, first + bytes);
  host(stream).submit([=] { std::copy_n(staged->data(), bytes, static_cast<std::byte*>(target)); });
}

void HostContext::write_in(Stream& stream, void* target, std::size_t,
                           const std::function<void(void* memory)>& write) {
  host(stream).submit([=] { write(target); }, "copy_in");  // for recorders the same
}

void HostContext::copy_out(Stream& stream, void* target, const void* source, std::size_t bytes) {
  host(stream).submit([=] {
    std::copy_n(static_cast<const std::byte*>(source), bytes, static_cast<std::byte*>(target));
  });
  stream.synchronize();
}

void HostContext::copy(Stream& stream, void* target, const void* source, std::size_t bytes) {
  host(stream).submit([=] {
    if (bytes > 0) std::memmove(target, source, bytes);
  });
}

}  // namespace convoy
