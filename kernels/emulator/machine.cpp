// What models of instructions, barriers and warp functions share: the running thread, faults,
// checks of addresses.
#include "kernels/emulator/machine.h"

#include <fmt/format.h>

#include <cstring>

#include "kernels/base/error.h"
#include "kernels/emulator/block_runner.h"
#include "kernels/emulator/device_language.h"

namespace convoy::emulator {

constinit thread_local uint3 threadIdx;
constinit thread_local uint3 blockIdx;
constinit thread_local dim3 blockDim;
constinit thread_local dim3 gridDim;

void* shared_memory(std::size_t bytes) {
  const machine::Block& block = *machine::running_thread("shared_memory").block;
  const std::size_t asked = block.work->config.shared_bytes;
  if (bytes > asked) {
    machine::fault(cudaErrorIllegalAddress,
                   fmt::format("the kernel uses {} bytes of shared memory, its launch asked for {}",
                               bytes, asked));
  }
  return block.shared;
}

namespace checks {

void read(const void* from, std::size_t bytes, const void* code) {
  if (auto* observer = machine::running_options().observer) observer->read(from, bytes, code);
}
void write(const void* to, std::size_t bytes, const void* code) {
  if (auto* observer = machine::running_options().observer) observer->write(to, bytes, code);
}
void atomic(const void* at, std::size_t bytes, const void* code) {
  if (auto* observer = machine::running_options().observer) observer->atomic(at, bytes, code);
}

}  // namespace checks

}  // namespace convoy::emulator

namespace convoy::emulator::machine {

constinit thread_local Thread* current_thread = nullptr;

Thread& running_thread(const char* what) {
  CONVOY_DCHECK(current_thread != nullptr, "{} was called outside a kernel", what);
  return *current_thread;
}

const MachineOptions& running_options() {
  return BlockRunner::here().grid().options;
}

void fault(cudaError_t error, const std::string& what) {
  const Thread& thread = running_thread("fault");
  const Block& block = *thread.block;
  throw DeviceFault(error, fmt::format("kernel {}, block {}, thread {}: {}", block.work->kernel,
                                       describe(block.index), describe(thread.index), what));
}

void check_aligned(const char* what, const void* at, std::size_t alignment) {
  if (reinterpret_cast<std::uintptr_t>(at) % alignment == 0) return;
  fault(cudaErrorMisalignedAddress,
        fmt::format("{}: address {} is no multiple of {}", what, at, alignment));
}

void check_shared(const char* what, const void* at, std::size_t bytes, std::size_t alignment) {
  const Block& block = *running_thread(what).block;
  const std::size_t size = block.work->config.shared_bytes;
  const auto offset =
      reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(block.shared);
  if (offset >= size || bytes > size - offset) {
    fault(cudaErrorIllegalAddress,
          fmt::format("{}: {} bytes at {} are not in the block's {} bytes of shared memory", what,
                      bytes, at, size));
  }
  check_aligned(what, at, alignment);
}

void undefine(void* at, std::size_t bytes) {
  std::memset(at, 0xFF, bytes);
  if (Observer* observer = running_options().observer) observer->undefine(at, bytes);
}

bool operator==(const Site& a, const Site& b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

std::string describe(const Site& site) {
  const char* slash = std::strrchr(site.file, '/');
  return fmt::format("{}:{}", slash == nullptr ? site.file : slash + 1, site.line);
}
std::string describe(const uint3& index) {
  return fmt::format("({}, {}, {})", index.x, index.y, index.z);
}

}  // namespace convoy::emulator::machine
