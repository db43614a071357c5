// What is looked at for each load, store and atomic of a kernel.
#include <fmt/core.h>
#include <link.h>

#include <algorithm>
#include <span>
#include <string>

#include "kernels/emulator/checks/checker.h"
#include "kernels/emulator/checks/code_place.h"
#include "kernels/emulator/device_language.h"
#include "kernels/emulator/devices.h"

namespace convoy::emulator::checks {

namespace {

std::uintptr_t number(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

// Whether the first byte at `address` lies in `size` bytes from `begin`.
bool is_within(const void* address, const void* begin, std::size_t size) {
  return number(address) - number(begin) < size;
}

std::string text(std::uint32_t rank, const dim3& extents) {
  return fmt::format("({}, {}, {})", rank % extents.x, rank / extents.x % extents.y,
                     rank / extents.x / extents.y);
}

const char* verb(AccessKind kind, bool is_atomic) {
  if (is_atomic) return "atomic";
  return kind == AccessKind::read ? "read" : "write";
}

std::string describe_place(const Block& block, const void* address) {
  const std::ptrdiff_t offset = static_cast<const std::byte*>(address) - block.shared;
  constexpr std::ptrdiff_t kNear = 1 << 12;
  const auto size = std::ptrdiff_t(block.work->config.shared_bytes);
  if (offset < 0 && offset > -kNear) return fmt::format("{} bytes before shared memory", -offset);
  if (offset >= 0 && offset < size) return fmt::format("shared memory at byte {}", offset);
  if (offset >= size && offset < size + kNear) {
    return fmt::format("byte {} of {} bytes of shared memory", offset, size);
  }
  return describe_pointer(address);
}

// "write of 4 bytes, shared memory at byte 20 (race.cu:12)"
std::string describe_use(const Thread& thread, const Use& use, const std::string& code) {
  return fmt::format("{} of {} byte{}, {} ({})", verb(use.kind, use.is_atomic), use.bytes,
                     use.bytes == 1 ? "" : "s", describe_place(*thread.block, use.address), code);
}

[[noreturn]] void report(cudaError_t error, const char* what, const Thread& thread,
                         const Use& use) {
  const std::string code = describe_code({code_offset(use.code)})[0];
  machine::fault(error, fmt::format("{}: {}", what, describe_use(thread, use, code)));
}

[[noreturn]] void report_race(const BlockCheck& check, const Thread& thread, const Use& use,
                              const Conflict& conflict) {
  const LaunchConfig& config = thread.block->work->config;
  const auto codes = describe_code({code_offset(use.code), conflict.other.code});
  const Stamp stamp = conflict.other.stamp;
  std::string who = "thread " + text(stamp.thread(), config.block);
  if (stamp.block() != check.order.now(int(thread.rank)).block()) {
    who = "block " + text(stamp.block() - check.grid->first, config.grid) + ", " + who;
  }
  machine::fault(cudaErrorLaunchFailure,
                 fmt::format("race: {}; {} by {} ({}) is not ordered with it",
                             describe_use(thread, use, codes[0]),
                             verb(conflict.kind, conflict.other.is_atomic), who, codes[1]));
}

// Constants of the program, which kernels may read. The program comes first of what is loaded.
bool is_in_program(const void* address) {
  struct Query {
    std::uintptr_t address;
    bool found;
  } query{number(address), false};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& query = *static_cast<Query*>(data);
        for (const ElfW(Phdr) & header : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
          const std::uintptr_t begin = info->dlpi_addr + header.p_vaddr;
          query.found |= header.p_type == PT_LOAD && query.address - begin < header.p_memsz;
        }
        return 1;
      },
      &query);
  return query.found;
}

// The machine's own variables and what it knows of the block.
bool is_of_machine(const Thread& thread, const void* address) {
  const Block& block = *thread.block;
  const auto holds = [&]<class T>(const T& object) {
    return is_within(address, &object, sizeof(T));
  };
  return holds(threadIdx) || holds(blockIdx) || holds(blockDim) || holds(gridDim) ||
         holds(machine::current_thread) || holds(block) || holds(*block.work) ||
         is_within(address, block.threads, block.size * sizeof(Thread));
}

bool is_on_stack(const void* address) {
  constexpr std::size_t kMostStack = 256 << 10;
  return is_within(address, __builtin_frame_address(0), kMostStack);
}

void check_owner(const Thread& thread, const Use& use) {
  const int owner = owner_of(use.address), device = thread.block->work->device;
  if (owner == device || owner == kPinnedOwner) return;
  if (emulated_device(device).peer_access(owner)) return;
  report(cudaErrorIllegalAddress, "memory of another device without peer access", thread, use);
}

void check_open(const Thread& thread, const Use& use, const ByteState* states) {
  std::uint32_t i = 0;
  while (i < use.bytes && states && states[i] != ByteState::closed) ++i;
  if (i == use.bytes) return;
  const auto allocation = lookup(static_cast<const std::byte*>(use.address) + i);
  const bool is_freed = allocation && allocation->freed &&
                        is_within(use.address, allocation->data, allocation->bytes);
  report(cudaErrorIllegalAddress, is_freed ? "freed memory" : "out of bounds", thread, use);
}

void check_alignment(const Thread& thread, const Use& use) {
  if (!use.is_one || number(use.address) % use.bytes == 0) return;
  report(cudaErrorMisalignedAddress, "misaligned", thread, use);
}

void check_initialised(const Thread& thread, const Use& use, const ByteState* states) {
  if (use.kind == AccessKind::write) return;
  if (std::find(states, states + use.bytes, ByteState::uninitialised) == states + use.bytes) return;
  report(cudaErrorLaunchFailure, "uninitialised", thread, use);
}

Access access_of(const BlockCheck& check, const Thread& thread, const Use& use) {
  return {check.order.now(int(thread.rank)), code_offset(use.code), use.is_atomic};
}

void pass_on(BlockOrder& order, int thread, Knowledge& object) {
  order.acquire(thread, object);
  merge(object, order.release(thread));
}

// Bytes that this grid touches for the first time must be moved, the others might be kept.
void count_bytes(KernelFigures& figures, const Use& use, const Cells& cells,
                 const BlockOrder& order) {
  const bool reads = use.kind != AccessKind::write, writes = use.kind != AccessKind::read;
  figures.bytes_read += reads ? use.bytes : 0;
  figures.bytes_written += writes ? use.bytes : 0;
  const std::size_t begin = MemoryShadow::offset_of(use.address);
  for (std::uint32_t i = 0; i < use.bytes; ++i) {
    const Cell& cell = cells.of_byte(begin + i);
    const bool is_written = order.is_of_this_grid(cell.write.stamp);
    const bool is_read = order.is_of_this_grid(cell.read[0].stamp);
    figures.compulsory_read += reads && !is_written && !is_read ? 1 : 0;
    figures.compulsory_written += writes && !is_written ? 1 : 0;
  }
}

}  // namespace

void Checker::check(Thread& thread, const Use& use) {
  BlockCheck& check = check_of(*thread.block);
  if (is_within(use.address, thread.block->shared, check.shared_states.size())) {
    return check_shared(check, thread, use);
  }
  if (owner_of(use.address) != kNoOwner) return check_global(check, thread, use);
  if (is_on_stack(use.address) || is_of_machine(thread, use.address)) return;
  if (use.kind == AccessKind::read && is_in_program(use.address)) return;
  report(cudaErrorIllegalAddress, "out of bounds", thread, use);
}

void Checker::check_shared(BlockCheck& check, Thread& thread, const Use& use) {
  const std::size_t offset = number(use.address) - number(thread.block->shared);
  if (offset + use.bytes > check.shared_states.size()) {
    report(cudaErrorIllegalAddress, "out of bounds", thread, use);
  }
  ByteState* states = &check.shared_states[offset];
  check_alignment(thread, use);
  check_initialised(thread, use, states);
  const Cells cells(check.shared_words.data(), check.shared_bytes.data());
  const auto conflict =
      cells.note(offset, use.bytes, access_of(check, thread, use), use.kind, check.order);
  if (conflict) report_race(check, thread, use, *conflict);
  if (use.is_atomic) pass_on(check.order, int(thread.rank), check.objects[use.address]);
  if (use.kind != AccessKind::read) std::fill_n(states, use.bytes, ByteState::initialised);
  if (check.has_figures) count_request(check, thread, use, true);
}

void Checker::check_global(BlockCheck& check, Thread& thread, const Use& use) {
  const std::unique_lock lock(mutex_);
  ByteState* states = memory_.states(use.address);
  check_owner(thread, use);
  check_open(thread, use, states);
  check_alignment(thread, use);
  check_initialised(thread, use, states);
  const Cells cells = memory_.cells(use.address);
  if (check.grid->has_figures) count_bytes(check.grid->figures, use, cells, check.order);
  const auto conflict = cells.note(MemoryShadow::offset_of(use.address), use.bytes,
                                   access_of(check, thread, use), use.kind, check.order);
  if (conflict) report_race(check, thread, use, *conflict);
  if (use.is_atomic) pass_on(check.order, int(thread.rank), check.grid->objects[use.address]);
  if (use.kind != AccessKind::read) std::fill_n(states, use.bytes, ByteState::initialised);
  if (check.has_figures) count_request(check, thread, use, false);
}

void Checker::count_request(BlockCheck& check, const Thread& thread, const Use& use,
                            bool is_shared) {
  check.figures.add(int(thread.rank), code_offset(use.code), use.address, use.bytes, is_shared,
                    use.kind != AccessKind::read);
}

}  // namespace convoy::emulator::checks
