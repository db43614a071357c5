// Memory, copies and memsets of the runtime's interface.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "kernels/emulator/streams.h"
#include "kernels/emulator/test_control.h"

namespace convoy::emulator {

// Of each device one, from which cudaMallocAsync() takes; it keeps nothing.
struct EmulatedMemPool {
  int device;
};

namespace {

bool on_device(int owner) {
  return owner != kNoOwner && owner != kPinnedOwner;
}

// Whether all `bytes` at `pointer` may be used by a copy: memory of the host that is not ours is.
cudaError_t check_range(const void* pointer, std::size_t bytes, const char* what) {
  if (bytes == 0) return cudaSuccess;
  if (!pointer) return fail(cudaErrorInvalidValue, fmt::format("{} is null", what));
  if (owner_of(pointer) == kNoOwner) return cudaSuccess;
  const std::optional<Allocation> found = lookup(pointer);
  const auto* const first = static_cast<const std::byte*>(pointer);
  const bool inside =
      found && !found->freed && first >= found->data && first + bytes <= found->data + found->bytes;
  if (inside) return cudaSuccess;
  return fail(cudaErrorInvalidValue,
              fmt::format("{}: {} bytes at {}", what, bytes, describe_pointer(pointer)));
}

bool direction_fits(cudaMemcpyKind kind, bool to_device, bool from_device) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return !to_device && !from_device;
    case cudaMemcpyHostToDevice:
      return to_device && !from_device;
    case cudaMemcpyDeviceToHost:
      return !to_device && from_device;
    case cudaMemcpyDeviceToDevice:
      return to_device && from_device;
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

cudaError_t check_copy(const void* target, const void* source, std::size_t bytes,
                       cudaMemcpyKind kind) {
  if (must_fail(FailingCall::copy)) return fail(cudaErrorInvalidValue, "a copy told to fail");
  if (bytes == 0) return cudaSuccess;
  cudaError_t error = check_range(target, bytes, "copy: target");
  if (error == cudaSuccess) error = check_range(source, bytes, "copy: source");
  if (error != cudaSuccess) return error;
  if (!direction_fits(kind, on_device(owner_of(target)), on_device(owner_of(source)))) {
    return fail(cudaErrorInvalidMemcpyDirection,
                fmt::format("copy of kind {} from {} to {}", static_cast<int>(kind),
                            owner_name(owner_of(source)), owner_name(owner_of(target))));
  }
  const auto* const to = static_cast<const std::byte*>(target);
  const auto* const from = static_cast<const std::byte*>(source);
  if (to < from + bytes && from < to + bytes) {
    return fail(cudaErrorInvalidValue, "copy: source and target overlap");
  }
  return cudaSuccess;
}

void copy_now(void* target, const void* source, std::size_t bytes) {
  std::memcpy(target, source, bytes);
  MemoryObserver* const observer = memory_observer();
  if (!observer || owner_of(target) == kNoOwner) return;
  if (owner_of(source) == kNoOwner) {
    observer->written(target, bytes);
  } else {
    observer->copied(target, source, bytes);
  }
}

void set_now(void* target, int value, std::size_t bytes) {
  std::memset(target, value, bytes);
  if (MemoryObserver* observer = memory_observer()) observer->written(target, bytes);
}

// The driver reads pageable memory before the call returns, and writes it before, too.
cudaError_t queue_copy(void* target, const void* source, std::size_t bytes, cudaStream_t stream) {
  const bool pageable_source = bytes > 0 && owner_of(source) == kNoOwner;
  const bool pageable_target = bytes > 0 && owner_of(target) == kNoOwner;
  if (!pageable_source) {
    const cudaError_t error = queue_work(stream, {[=] {
                                           if (bytes > 0) copy_now(target, source, bytes);
                                         }});
    if (error != cudaSuccess || !pageable_target) return error;
    return cudaStreamSynchronize(stream);
  }
  const auto* const first = static_cast<const std::byte*>(source);
  auto staged = std::make_shared<std::vector<std::byte>>(first, first + bytes);
  return queue_work(stream, {[=] { copy_now(target, staged->data(), bytes); }});
}

// Calls that have no stream wait for those of the device that are not their own masters.
cudaError_t begin_synchronous_call() {
  if (const cudaError_t refused = refusal(); refused != cudaSuccess) return refused;
  if (const cudaError_t refused = refuse_while_capturing(); refused != cudaSuccess) return refused;
  for (const auto& stream : streams_of(emulated_device(current_device()))) {
    if (stream->blocking()) stream->drain();
  }
  return cudaSuccess;
}

cudaError_t allocate(void** pointer, std::size_t bytes, MemoryRange& range) {
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (must_fail(FailingCall::allocation)) {
    return fail(cudaErrorMemoryAllocation, "an allocation told to fail");
  }
  *pointer = range.allocate(bytes);
  if (*pointer) return cudaSuccess;
  return fail(cudaErrorMemoryAllocation, fmt::format("{} bytes asked for, {} of {} in use", bytes,
                                                     range.in_use(), range.capacity()));
}

cudaError_t release(void* pointer, MemoryRange& range, EmulatedDevice* device) {
  const std::string what = describe_pointer(pointer);
  switch (range.free(pointer)) {
    case FreeResult::done:
      return cudaSuccess;
    case FreeResult::not_an_allocation:
    case FreeResult::already_freed:
      return fail(cudaErrorInvalidValue, fmt::format("free: {}", what));
    case FreeResult::red_zone_damaged:
      break;
  }
  const std::string text = fmt::format("something was written just outside of {}", what);
  if (device) device->set_fault(cudaErrorIllegalAddress, text);
  return fail(cudaErrorIllegalAddress, text);
}

cudaError_t free_device_memory(void* pointer) {
  if (const cudaError_t refused = refusal(); refused != cudaSuccess) return refused;
  if (!pointer) return cudaSuccess;
  if (const cudaError_t refused = refuse_while_capturing(); refused != cudaSuccess) return refused;
  const int owner = owner_of(pointer);
  if (!on_device(owner)) {
    return fail(cudaErrorInvalidValue, fmt::format("free: {}", describe_pointer(pointer)));
  }
  EmulatedDevice& device = emulated_device(owner);
  for (const auto& stream : streams_of(device)) stream->drain();
  const cudaError_t error = release(pointer, device.memory(), &device);
  return error != cudaSuccess ? error : device.fault();
}

cudaError_t free_pinned_memory(void* pointer) {
  if (const cudaError_t refused = refusal(); refused != cudaSuccess) return refused;
  if (!pointer) return cudaSuccess;
  if (const cudaError_t refused = refuse_while_capturing(); refused != cudaSuccess) return refused;
  if (owner_of(pointer) != kPinnedOwner) {
    return fail(cudaErrorInvalidValue, fmt::format("free: {}", describe_pointer(pointer)));
  }
  return release(pointer, pinned_memory(), nullptr);
}

cudaError_t check_memset(const void* target, std::size_t bytes) {
  if (bytes > 0 && owner_of(target) == kNoOwner) {
    return fail(cudaErrorInvalidValue, "memset: target is memory of the host");
  }
  return check_range(target, bytes, "memset: target");
}

}  // namespace

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  if (!pointer) return note(cudaErrorInvalidValue);
  if (const cudaError_t refused = refusal(); refused != cudaSuccess) return note(refused);
  if (const cudaError_t refused = refuse_while_capturing(); refused != cudaSuccess) {
    return note(refused);
  }
  return note(allocate(pointer, bytes, emulated_device(current_device()).memory()));
}

cudaError_t cudaFree(void* pointer) {
  return note(free_device_memory(pointer));
}

cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream) {
  if (!pointer) return note(cudaErrorInvalidValue);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (const cudaError_t error = cudaStreamIsCapturing(stream, &status); error != cudaSuccess) {
    return error;
  }
  if (status != cudaStreamCaptureStatusNone) return note(cudaErrorNotSupported);
  return note(allocate(pointer, bytes, emulated_device(current_device()).memory()));
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  if (!pointer) return cudaSuccess;
  const int owner = owner_of(pointer);
  const std::optional<Allocation> found = lookup(pointer);
  if (!on_device(owner) || !found || found->freed || found->data != pointer) {
    return note(fail(cudaErrorInvalidValue, fmt::format("free: {}", describe_pointer(pointer))));
  }
  EmulatedDevice& device = emulated_device(owner);
  return note(
      queue_work(stream, {[pointer, &device] { release(pointer, device.memory(), &device); }}));
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  static auto* const pools = new std::array<EmulatedMemPool, kMostDevices>;
  if (device < 0 || device >= kMostDevices) return note(cudaErrorInvalidDevice);
  EmulatedMemPool& found = (*pools)[static_cast<std::size_t>(device)];
  *pool = &found;
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  const bool known = pool && attribute == cudaMemPoolAttrReleaseThreshold && value;
  return note(known ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t) {
  return note(pool ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  if (!pointer) return note(cudaErrorInvalidValue);
  if (const cudaError_t refused = refusal(); refused != cudaSuccess) return note(refused);
  if (const cudaError_t refused = refuse_while_capturing(); refused != cudaSuccess) {
    return note(refused);
  }
  return note(allocate(pointer, bytes, pinned_memory()));
}

cudaError_t cudaFreeHost(void* pointer) {
  return note(free_pinned_memory(pointer));
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  if (const cudaError_t refused = refusal(); refused != cudaSuccess) return note(refused);
  const MemoryRange& range = emulated_device(current_device()).memory();
  *total_bytes = range.capacity();
  *free_bytes = *total_bytes - std::min(*total_bytes, range.in_use());
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind) {
  cudaError_t error = begin_synchronous_call();
  if (error == cudaSuccess) error = check_copy(target, source, bytes, kind);
  if (error == cudaSuccess && bytes > 0) copy_now(target, source, bytes);
  return note(error);
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  const cudaError_t error = check_copy(target, source, bytes, kind);
  return note(error == cudaSuccess ? queue_copy(target, source, bytes, stream) : error);
}

cudaError_t cudaMemcpyPeerAsync(void* target, int target_device, const void* source,
                                int source_device, std::size_t bytes, cudaStream_t stream) {
  if (bytes > 0 && (owner_of(target) != target_device || owner_of(source) != source_device)) {
    return note(
        fail(cudaErrorInvalidValue,
             fmt::format("copy between emu:{} and emu:{}: source is {}, target {}", source_device,
                         target_device, describe_pointer(source), describe_pointer(target))));
  }
  return cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemset(void* target, int value, std::size_t bytes) {
  cudaError_t error = begin_synchronous_call();
  if (error == cudaSuccess) error = check_memset(target, bytes);
  if (error == cudaSuccess && bytes > 0) set_now(target, value, bytes);
  return note(error);
}

cudaError_t cudaMemsetAsync(void* target, int value, std::size_t bytes, cudaStream_t stream) {
  if (const cudaError_t error = check_memset(target, bytes); error != cudaSuccess) {
    return note(error);
  }
  return note(queue_work(stream, {[=] {
                           if (bytes > 0) set_now(target, value, bytes);
                         }}));
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (!attributes) return note(cudaErrorInvalidValue);
  const int owner = owner_of(pointer);
  const std::optional<Allocation> found = lookup(pointer);
  void* const address = const_cast<void*>(pointer);
  if (owner == kNoOwner || !found || found->freed) {
    *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, address};
  } else if (owner == kPinnedOwner) {
    *attributes = {cudaMemoryTypeHost, 0, address, address};
  } else {
    *attributes = {cudaMemoryTypeDevice, owner, address, nullptr};
  }
  return cudaSuccess;
}

}  // namespace convoy::emulator
