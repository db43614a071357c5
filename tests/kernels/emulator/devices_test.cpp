// Devices of the emulated runtime: their numbers, properties, peers, errors.
#include "kernels/emulator/devices.h"

#include <cstring>
#include <string>
#include <thread>

#include "kernels/cuda/runtime_extras.h"
#include "tests/kernels/emulator/runtime_support.h"

namespace convoy::emulator {

TEST_CASE("emulated devices: a thread has one of them, at first number 0") {
  int count = 0, device = -1;
  CHECK(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK(count == 64);
  {
    const OnDevice on(63);
    CHECK(cudaGetDevice(&device) == cudaSuccess);
    CHECK(device == 63);
    std::thread([&] { cudaGetDevice(&device); }).join();
    CHECK(device == 0);
  }
  CHECK(cudaSetDevice(64) == cudaErrorInvalidDevice);
  CHECK(cudaSetDevice(-1) == cudaErrorInvalidDevice);
  CHECK(cudaGetDevice(&device) == cudaSuccess);
  CHECK(device == 0);
}

TEST_CASE("emulated devices: properties and attributes agree") {
  cudaDeviceProp properties = {};
  REQUIRE(cudaGetDeviceProperties(&properties, 1) == cudaSuccess);
  CHECK(std::string(properties.name) == "emulated CUDA device");
  CHECK(properties.warpSize == 32);
  int value = 0;
  for (const auto& [attribute, expected] :
       {std::pair{cudaDevAttrMultiProcessorCount, properties.multiProcessorCount},
        {cudaDevAttrComputeCapabilityMajor, properties.major},
        {cudaDevAttrComputeCapabilityMinor, properties.minor},
        {cudaDevAttrMaxThreadsPerBlock, properties.maxThreadsPerBlock},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, 227 << 10},
        {cudaDevAttrMaxSharedMemoryPerBlock, 48 << 10}}) {
    CHECK(cudaDeviceGetAttribute(&value, attribute, 1) == cudaSuccess);
    CHECK(value == expected);
  }
  CHECK(cudaDriverGetVersion(&value) == cudaSuccess);
  CHECK(value == 13000);
  CHECK(cudaGetDeviceProperties(&properties, 64) == cudaErrorInvalidDevice);
  CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 64) == cudaErrorInvalidDevice);
  CHECK(cudaDeviceGetAttribute(&value, cudaDeviceAttr(9999), 0) == cudaErrorInvalidValue);
}

TEST_CASE("emulated devices: peer access is one way, given once") {
  const OnDevice on(10);
  int can = -1;
  CHECK(cudaDeviceCanAccessPeer(&can, 10, 11) == cudaSuccess);
  CHECK(can == 1);
  CHECK(cudaDeviceCanAccessPeer(&can, 10, 10) == cudaSuccess);
  CHECK(can == 0);
  CHECK(cudaDeviceCanAccessPeer(&can, 10, 64) == cudaErrorInvalidDevice);
  CHECK(cudaDeviceEnablePeerAccess(11, 1) == cudaErrorInvalidValue);
  CHECK(cudaDeviceEnablePeerAccess(10, 0) == cudaErrorInvalidDevice);
  CHECK(cudaDeviceDisablePeerAccess(64) == cudaErrorInvalidDevice);
  CHECK(cudaDeviceDisablePeerAccess(11) == cudaErrorPeerAccessNotEnabled);
  CHECK(cudaDeviceEnablePeerAccess(11, 0) == cudaSuccess);
  CHECK(cudaDeviceEnablePeerAccess(11, 0) == cudaErrorPeerAccessAlreadyEnabled);
  CHECK(emulated_device(10).peer_access(11));
  CHECK(!emulated_device(11).peer_access(10));
  CHECK(cudaDeviceDisablePeerAccess(11) == cudaSuccess);
}

TEST_CASE("emulated devices: the last error of a thread is told once") {
  cudaGetLastError();
  CHECK(cudaSetDevice(64) == cudaErrorInvalidDevice);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(std::strcmp(cudaGetErrorName(cudaErrorInvalidDevice), "cudaErrorInvalidDevice") == 0);
  CHECK(std::strcmp(cudaGetErrorString(cudaErrorInvalidDevice), "invalid device ordinal") == 0);
  CHECK(std::strcmp(cudaGetErrorName(cudaError_t(12345)), "unrecognized error code") == 0);
  CHECK(std::strcmp(cudaGetErrorString(cudaError_t(12345)), "unrecognized error code") == 0);
}

TEST_CASE("emulated devices: every call for a device returns its fault") {
  const OnDevice on(12);
  const TestStream stream;
  const TestMemory memory(4);
  const TestEvent event;
  emulated_device(12).set_fault(cudaErrorIllegalAddress, "kernel k: it fell");
  emulated_device(12).set_fault(cudaErrorAssert, "a later one");
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(failure_detail() == "kernel k: it fell");
  void* pointer = nullptr;
  cudaStream_t other = nullptr;
  int word = 0;
  CHECK(cudaMalloc(&pointer, 4) == cudaErrorIllegalAddress);
  CHECK(cudaFree(memory.as()) == cudaErrorIllegalAddress);
  CHECK(cudaMallocHost(&pointer, 4) == cudaErrorIllegalAddress);
  CHECK(cudaStreamCreate(&other) == cudaErrorIllegalAddress);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress);
  CHECK(cudaStreamQuery(stream) == cudaErrorIllegalAddress);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CHECK(cudaEventRecord(event, stream) == cudaErrorIllegalAddress);
  CHECK(cudaEventQuery(event) == cudaErrorIllegalAddress);
  CHECK(cudaMemcpy(&word, memory.as(), 4, cudaMemcpyDeviceToHost) == cudaErrorIllegalAddress);
  CHECK(cudaMemsetAsync(memory.as(), 0, 4, stream) == cudaErrorIllegalAddress);
  CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorIllegalAddress);
  {
    const OnDevice elsewhere(13);
    CHECK(cudaMalloc(&pointer, 4) == cudaSuccess);
    CHECK(cudaFree(pointer) == cudaSuccess);
  }
  CHECK(cudaSetDevice(12) == cudaSuccess);
  revive(12);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

}  // namespace convoy::emulator
