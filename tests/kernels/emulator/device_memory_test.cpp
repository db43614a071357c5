// Memory of the emulated runtime: addresses, red zones, quarantine, copies and what they refuse.
#include "kernels/emulator/device_memory.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/cuda/runtime_extras.h"
#include "tests/kernels/emulator/runtime_support.h"

namespace convoy::emulator {
namespace {

std::uintptr_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

std::vector<unsigned char> read_bytes(const void* device, std::size_t bytes) {
  std::vector<unsigned char> values(bytes);
  REQUIRE(cudaMemcpy(values.data(), device, bytes, cudaMemcpyDeviceToHost) == cudaSuccess);
  return values;
}

}  // namespace

TEST_CASE("emulated memory: a pointer names its device") {
  const OnDevice on(20);
  const TestMemory first(1), second(1000);
  CHECK(owner_of(first.as()) == 20);
  CHECK(address(first.as()) >> 36 == address(second.as()) >> 36);
  CHECK(address(first.as()) % 256 == 0);
  CHECK(address(second.as()) % 256 == 0);
  int word = 0;
  CHECK(owner_of(&word) == kNoOwner);
  CHECK(owner_of(nullptr) == kNoOwner);
  const OnDevice other(21);
  const TestMemory elsewhere(1);
  CHECK(owner_of(elsewhere.as()) == 21);
  CHECK(address(first.as()) >> 36 != address(elsewhere.as()) >> 36);
}

TEST_CASE("emulated memory: what a pointer is, by CUDA and by look-up") {
  const OnDevice on(20);
  const TestMemory memory(100);
  void* pinned = nullptr;
  REQUIRE(cudaMallocHost(&pinned, 100) == cudaSuccess);
  int word = 0;
  cudaPointerAttributes found = {};
  CHECK(cudaPointerGetAttributes(&found, memory.as<char>() + 99) == cudaSuccess);
  CHECK(found.type == cudaMemoryTypeDevice);
  CHECK(found.device == 20);
  CHECK(cudaPointerGetAttributes(&found, pinned) == cudaSuccess);
  CHECK(found.type == cudaMemoryTypeHost);
  CHECK(found.hostPointer == pinned);
  CHECK(cudaPointerGetAttributes(&found, &word) == cudaSuccess);
  CHECK(found.type == cudaMemoryTypeUnregistered);
  CHECK(cudaPointerGetAttributes(nullptr, &word) == cudaErrorInvalidValue);

  const std::optional<Allocation> inside = lookup(memory.as<char>() + 50);
  REQUIRE(inside);
  CHECK(static_cast<void*>(inside->data) == memory.as());
  CHECK(inside->bytes == 100);
  CHECK(inside->owner == 20);
  CHECK(!inside->freed);
  // The red zones belong to their allocation.
  for (int offset : {-128, -1, 100, 227}) CHECK(lookup(memory.as<char>() + offset));
  CHECK(!lookup(memory.as<char>() + 8192));
  CHECK(!lookup(&word));
  const std::string name =
      "allocation " + std::to_string(inside->number) + " of emu:20 (100 bytes)";
  CHECK(describe_pointer(memory.as<char>() + 7) == "byte 7 of " + name);
  CHECK(describe_pointer(memory.as<char>() - 3) == "3 bytes before " + name);
  CHECK(describe_pointer(memory.as<char>() + 104) == "4 bytes past the end of " + name);
  CHECK(describe_pointer(&word) == "host memory");
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
}

TEST_CASE("emulated memory: fresh memory is 0xFF") {
  const TestMemory memory(300);
  const std::vector<unsigned char> expected(300, 0xFF);
  CHECK(read_bytes(memory.as(), 300) == expected);
}

TEST_CASE("emulated memory: freed memory stays known and its addresses unused") {
  void* pointer = nullptr;
  REQUIRE(cudaMalloc(&pointer, 64) == cudaSuccess);
  REQUIRE(cudaFree(pointer) == cudaSuccess);
  const std::optional<Allocation> freed = lookup(pointer);
  REQUIRE(freed);
  CHECK(freed->freed);
  const TestMemory next(64);
  CHECK(next.as() != pointer);
  CHECK(cudaFree(pointer) == cudaErrorInvalidValue);
  CHECK(failure_detail().find("freed allocation") != std::string::npos);
  CHECK(cudaFree(next.as<char>() + 1) == cudaErrorInvalidValue);
  int word = 0;
  CHECK(cudaFree(&word) == cudaErrorInvalidValue);
  CHECK(cudaFreeHost(next.as()) == cudaErrorInvalidValue);
  CHECK(cudaFree(nullptr) == cudaSuccess);
  CHECK(cudaFreeHost(nullptr) == cudaSuccess);
  CHECK(cudaMemcpy(&word, pointer, 4, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(cudaMemset(pointer, 0, 4) == cudaErrorInvalidValue);
}

TEST_CASE("emulated memory: quarantine ends, and capacity counts live bytes alone") {
  const OnDevice on(22);
  set_capacity(22, 1 << 20);
  void* pointer = nullptr;
  for (int i = 0; i < 5000; ++i) {
    REQUIRE(cudaMalloc(&pointer, 1 << 19) == cudaSuccess);
    REQUIRE(cudaFree(pointer) == cudaSuccess);
  }
  CHECK(lookup(pointer));
  std::size_t left = 0, all = 0;
  CHECK(cudaMemGetInfo(&left, &all) == cudaSuccess);
  CHECK(left == 1 << 20);
  CHECK(all == 1 << 20);
}

TEST_CASE("emulated memory: there is no more than the capacity") {
  const OnDevice on(22);
  set_capacity(22, 1000);
  const TestMemory most(900);
  void* pointer = &pointer;
  CHECK(cudaMalloc(&pointer, 101) == cudaErrorMemoryAllocation);
  CHECK(pointer == nullptr);
  CHECK(failure_detail() == "101 bytes asked for, 900 of 1000 in use");
  CHECK(cudaMalloc(&pointer, std::size_t{1} << 60) == cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&pointer, 100) == cudaSuccess);
  CHECK(cudaFree(pointer) == cudaSuccess);
  CHECK(cudaMalloc(&pointer, 0) == cudaSuccess);
  CHECK(pointer == nullptr);
  CHECK(cudaMalloc(static_cast<void**>(nullptr), 1) == cudaErrorInvalidValue);
  CHECK(cudaMallocHost(static_cast<void**>(nullptr), 1) == cudaErrorInvalidValue);
}

TEST_CASE("emulated memory: a write into a red zone is found by the free") {
  for (int offset : {-1, -128, 40, 40 + 127}) {
    const OnDevice on(23);
    void* pointer = nullptr;
    REQUIRE(cudaMalloc(&pointer, 40) == cudaSuccess);
    static_cast<unsigned char*>(pointer)[offset] = 0;  // as a kernel might
    CHECK(cudaFree(pointer) == cudaErrorIllegalAddress);
    CHECK(failure_detail().find("something was written just outside of") != std::string::npos);
    CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    revive(23);
  }
}

TEST_CASE("emulated memory: copies go where their kind says") {
  const TestStream stream;
  const TestMemory a(8), b(8);
  std::int64_t in = 0x1234567890, out = 0;
  CHECK(cudaMemcpyAsync(a.as(), &in, 8, cudaMemcpyHostToDevice, stream) == cudaSuccess);
  in = 0;  // pageable memory is read before the call returns
  CHECK(cudaMemcpyAsync(b.as(), a.as(), 8, cudaMemcpyDeviceToDevice, stream) == cudaSuccess);
  CHECK(cudaMemcpyAsync(&out, b.as(), 8, cudaMemcpyDefault, stream) == cudaSuccess);
  CHECK(out == 0x1234567890);
  CHECK(cudaMemsetAsync(a.as(), 0x11, 4, stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(read_value<std::int64_t>(a.as()) == 0x1211111111);
  std::int64_t host = 0;
  CHECK(cudaMemcpy(&host, &out, 8, cudaMemcpyHostToHost) == cudaSuccess);
  CHECK(host == out);

  for (const auto& [target, source, kind] : {std::tuple{a.as(), b.as(), cudaMemcpyHostToDevice},
                                             {a.as(), b.as(), cudaMemcpyHostToHost},
                                             {a.as(), b.as(), cudaMemcpyDeviceToHost},
                                             {a.as(), b.as(), cudaMemcpyKind(9)}}) {
    CHECK(cudaMemcpy(target, source, 8, kind) == cudaErrorInvalidMemcpyDirection);
  }
  CHECK(cudaMemcpy(a.as(), &out, 8, cudaMemcpyDeviceToDevice) == cudaErrorInvalidMemcpyDirection);
  CHECK(cudaMemcpy(a.as(), nullptr, 8, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(failure_detail() == "copy: source is null");
  CHECK(cudaMemcpy(a.as(), &out, 9, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(a.as<char>() - 1, &out, 8, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(a.as<char>() + 1, a.as(), 4, cudaMemcpyDeviceToDevice) == cudaErrorInvalidValue);
  CHECK(failure_detail() == "copy: source and target overlap");
  CHECK(cudaMemset(a.as(), 0, 9) == cudaErrorInvalidValue);
  CHECK(cudaMemset(&out, 0, 8) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(a.as(), b.as(), 8, cudaMemcpyDefault, nullptr) ==
        cudaErrorInvalidResourceHandle);
  CHECK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice) == cudaSuccess);
}

TEST_CASE("emulated memory: copies between devices need no peer access") {
  const OnDevice on(24);
  const TestStream stream;
  const TestMemory here(4);
  REQUIRE(cudaMemset(here.as(), 7, 4) == cudaSuccess);
  const OnDevice other(25);
  const TestMemory there(4);
  CHECK(cudaSetDevice(24) == cudaSuccess);
  CHECK(cudaMemcpyPeerAsync(there.as(), 25, here.as(), 24, 4, stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(read_value<std::uint32_t>(there.as()) == 0x07070707);
  CHECK(cudaMemcpyPeerAsync(there.as(), 24, here.as(), 25, 4, stream) == cudaErrorInvalidValue);
}

TEST_CASE("emulated memory: the stream's order frees what cudaFreeAsync is given") {
  const TestStream stream;
  Gate gate;
  void* pointer = nullptr;
  REQUIRE(cudaMallocAsync(&pointer, 16, stream) == cudaSuccess);
  gate.close(stream);
  CHECK(cudaFreeAsync(pointer, stream) == cudaSuccess);
  CHECK(!lookup(pointer)->freed);
  gate.open();
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(lookup(pointer)->freed);
  CHECK(cudaFreeAsync(pointer, stream) == cudaErrorInvalidValue);
  CHECK(cudaFreeAsync(nullptr, stream) == cudaSuccess);
  CHECK(cudaMallocAsync(nullptr, 16, stream) == cudaErrorInvalidValue);
  CHECK(cudaMallocAsync(&pointer, 16, nullptr) == cudaErrorInvalidResourceHandle);
  cudaMemPool_t pool = nullptr;
  std::uint64_t threshold = 0;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess);
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold) == cudaSuccess);
  CHECK(cudaMemPoolTrimTo(pool, 0) == cudaSuccess);
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 64) == cudaErrorInvalidDevice);
  CHECK(cudaMemPoolSetAttribute(nullptr, cudaMemPoolAttrReleaseThreshold, &threshold) ==
        cudaErrorInvalidValue);
  CHECK(cudaMemPoolTrimTo(nullptr, 0) == cudaErrorInvalidValue);
}

TEST_CASE("emulated memory: the n-th allocation or copy fails when told to") {
  void* pointer = nullptr;
  fail_call(FailingCall::allocation, 2);
  CHECK(cudaMalloc(&pointer, 4) == cudaSuccess);
  const void* const kept = pointer;
  CHECK(cudaMalloc(&pointer, 4) == cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&pointer, 4) == cudaSuccess);
  fail_call(FailingCall::copy, 1);
  CHECK(cudaMemcpy(pointer, kept, 4, cudaMemcpyDeviceToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(pointer, kept, 4, cudaMemcpyDeviceToDevice) == cudaSuccess);
  CHECK(cudaFree(pointer) == cudaSuccess);
  CHECK(cudaFree(const_cast<void*>(kept)) == cudaSuccess);
}

TEST_CASE("emulated memory: an observer is told of what happens outside kernels") {
  struct Log : MemoryObserver {
    void allocated(const Allocation& allocation) override { bytes += allocation.bytes; }
    void freed(const Allocation& allocation) override { bytes -= allocation.bytes; }
    void written(void*, std::size_t count) override { written_bytes += count; }
    void copied(void*, const void*, std::size_t count) override { copied_bytes += count; }
    std::size_t bytes = 0, written_bytes = 0, copied_bytes = 0;
  };
  static Log log;
  MemoryObserver* const before = memory_observer();
  set_memory_observer(&log);
  {
    const TestMemory a(10), b(10);
    CHECK(log.bytes == 20);
    int word = 0;
    CHECK(cudaMemcpy(a.as(), &word, 4, cudaMemcpyHostToDevice) == cudaSuccess);
    CHECK(cudaMemset(b.as(), 0, 3) == cudaSuccess);
    CHECK(cudaMemcpy(a.as(), b.as(), 2, cudaMemcpyDeviceToDevice) == cudaSuccess);
    CHECK(cudaMemcpy(&word, a.as(), 4, cudaMemcpyDeviceToHost) == cudaSuccess);
  }
  set_memory_observer(before);
  CHECK(log.bytes == 0);
  CHECK(log.written_bytes == 7);
  CHECK(log.copied_bytes == 2);
}

}  // namespace convoy::emulator
