#include "kernels/emulator/devices.h"

#include <unistd.h>

#include <cstring>
#include <utility>

#include "kernels/cuda/runtime_extras.h"
#include "kernels/emulator/machine.h"

namespace convoy::emulator {
namespace {

thread_local int thread_device = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local std::string last_detail;
thread_local bool in_host_function = false;

bool is_device(int device) {
  return device >= 0 && device < kMostDevices;
}

int attribute_of(cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      return machine::kMaxBlockThreads;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return kSharedBytesPerBlock;
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrClockRate:
      return 0;  // kHz: time means nothing here
    case cudaDevAttrMultiProcessorCount:
      return machine::kMultiprocessors;
    case cudaDevAttrMemoryClockRate:
      return 0;
    case cudaDevAttrGlobalMemoryBusWidth:
      return 0;
    case cudaDevAttrComputeCapabilityMajor:
      return 9;
    case cudaDevAttrComputeCapabilityMinor:
      return 0;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return 228 << 10;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return machine::kMaxSharedBytes;
    case cudaDevAttrMemoryPoolsSupported:
      return 1;
  }
  return -1;
}

cudaUUID_t uuid_of(int device) {
  const std::int64_t process = getpid();
  cudaUUID_t uuid = {};
  std::memcpy(uuid.bytes, &process, sizeof process);
  std::memcpy(uuid.bytes + sizeof process, &device, sizeof device);
  return uuid;
}

}  // namespace

std::string EmulatedDevice::fault_text() const {
  std::lock_guard lock(mutex_);
  return fault_text_;
}

void EmulatedDevice::set_fault(cudaError_t error, const std::string& text) {
  std::lock_guard lock(mutex_);
  if (fault() != cudaSuccess) return;
  fault_text_ = text;
  fault_.store(error, std::memory_order_release);
}

void EmulatedDevice::clear_fault() {
  std::lock_guard lock(mutex_);
  fault_text_.clear();
  fault_.store(cudaSuccess, std::memory_order_release);
}

EmulatedDevice& emulated_device(int index) {
  static auto* const devices = new std::array<std::unique_ptr<EmulatedDevice>, kMostDevices>;
  static auto* const mutex = new std::mutex;
  std::lock_guard lock(*mutex);
  std::unique_ptr<EmulatedDevice>& slot = (*devices)[static_cast<std::size_t>(index)];
  if (!slot) slot = std::make_unique<EmulatedDevice>(index);
  return *slot;
}

MemoryRange& pinned_memory() {
  static auto* const range = new MemoryRange(kPinnedOwner, kDefaultCapacity);
  return *range;
}

int current_device() {
  return thread_device;
}

cudaError_t note(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

cudaError_t fail(cudaError_t error, std::string detail) {
  last_detail = std::move(detail);
  return error;
}

std::string failure_detail() {
  const EmulatedDevice& device = emulated_device(thread_device);
  if (device.fault() != cudaSuccess) return device.fault_text();
  return std::exchange(last_detail, std::string());
}

cudaError_t refusal() {
  if (in_host_function) return cudaErrorNotPermitted;
  return emulated_device(thread_device).fault();
}

HostFunctionScope::HostFunctionScope() {
  in_host_function = true;
}

HostFunctionScope::~HostFunctionScope() {
  in_host_function = false;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = kMostDevices;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (in_host_function) return note(cudaErrorNotPermitted);
  if (!is_device(device)) return note(cudaErrorInvalidDevice);
  thread_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = thread_device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!is_device(device)) return note(cudaErrorInvalidDevice);
  *properties = {};
  const std::string name = "emulated CUDA device";
  name.copy(properties->name, sizeof properties->name - 1);
  properties->uuid = uuid_of(device);
  properties->totalGlobalMem = emulated_device(device).memory().capacity();
  properties->sharedMemPerBlock = kSharedBytesPerBlock;
  properties->sharedMemPerBlockOptin = machine::kMaxSharedBytes;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = machine::kMaxBlockThreads;
  properties->multiProcessorCount = machine::kMultiprocessors;
  properties->major = attribute_of(cudaDevAttrComputeCapabilityMajor);
  properties->minor = attribute_of(cudaDevAttrComputeCapabilityMinor);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!is_device(device)) return note(cudaErrorInvalidDevice);
  const int found = attribute_of(attribute);
  if (found < 0) return note(cudaErrorInvalidValue);
  *value = found;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  const cudaError_t fault = emulated_device(thread_device).fault();
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return fault != cudaSuccess ? fault : error;
}

cudaError_t cudaPeekAtLastError() {
  const cudaError_t fault = emulated_device(thread_device).fault();
  return fault != cudaSuccess ? fault : last_error;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (!is_device(device) || !is_device(peer)) return note(cudaErrorInvalidDevice);
  *can = device != peer ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (const cudaError_t refused = refusal(); refused != cudaSuccess) return note(refused);
  if (flags != 0) return note(cudaErrorInvalidValue);
  if (!is_device(peer) || peer == thread_device) return note(cudaErrorInvalidDevice);
  const bool before = emulated_device(thread_device).peer_access(peer).exchange(true);
  return note(before ? cudaErrorPeerAccessAlreadyEnabled : cudaSuccess);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  if (const cudaError_t refused = refusal(); refused != cudaSuccess) return note(refused);
  if (!is_device(peer)) return note(cudaErrorInvalidDevice);
  const bool before = emulated_device(thread_device).peer_access(peer).exchange(false);
  return note(before ? cudaSuccess : cudaErrorPeerAccessNotEnabled);
}

}  // namespace convoy::emulator
