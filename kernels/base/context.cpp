#include "kernels/base/context.h"

#include <map>
#include <mutex>

#include "kernels/backends.h"
#include "kernels/base/error.h"
#include "kernels/base/graph.h"

namespace convoy {
namespace {

// Innermost scope of each device, of one thread.
thread_local std::map<Device, Stream*> scoped_streams;

}  // namespace

void DeviceContext::set_tf32(bool allowed) {
  CONVOY_CHECK(!allowed, "{}: no tf32 here, which cuda:K and emu:K have", to_string(device()));
}

void DeviceContext::write_in(Stream& stream, void* target, std::size_t bytes,
                             const std::function<void(void* memory)>& write) {
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  write(memory.get());
  copy_in(stream, target, memory.get(), bytes);
}

void DeviceContext::reach(const Device& other) {
  CONVOY_FAIL(usage, "{}: no way to the memory of {}, which cuda:K and emu:K have to their kind",
              to_string(device()), to_string(other));
}

void DeviceContext::begin_capture(Stream&) {
  CONVOY_FAIL(usage, "{}: no graphs here, which cuda:K and emu:K have", to_string(device()));
}

std::unique_ptr<Graph> DeviceContext::end_capture(Stream&) {
  CONVOY_FAIL(usage, "{}: no graphs here, which cuda:K and emu:K have", to_string(device()));
}

DeviceContext& context(const Device& device) {
  // The one process-wide table: devices are the process's, and tensors refer to them for ever.
  static auto* contexts = new std::map<Device, std::unique_ptr<DeviceContext>>;
  static auto* mutex = new std::mutex;
  std::lock_guard lock(*mutex);
  std::unique_ptr<DeviceContext>& slot = (*contexts)[device];
  if (!slot) slot = open_device(device);
  return *slot;
}

Stream& current_stream(const Device& device) {
  auto found = scoped_streams.find(device);
  if (found != scoped_streams.end() && found->second) return *found->second;
  return context(device).default_stream();
}

StreamScope::StreamScope(Stream& stream) : device_(stream.device()) {
  outer_ = std::exchange(scoped_streams[device_], &stream);
}

StreamScope::~StreamScope() {
  scoped_streams[device_] = outer_;
}

}  // namespace convoy
