#include "kernels/emulator/async_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernels/emulator/block_runner.h"

namespace convoy::emulator::machine {
namespace {

void act(const PendingCopy& copy) {
  if (copy.from_bytes > 0) checks::read(copy.from, copy.from_bytes, copy.code);
  checks::write(copy.to, copy.bytes, copy.code);
  auto* to = static_cast<std::byte*>(copy.to);
  std::memcpy(to, copy.from, copy.from_bytes);
  std::memset(to + copy.from_bytes, 0, copy.bytes - copy.from_bytes);
}

void check_copy(const PendingCopy& copy) {
  const unsigned bytes = copy.bytes;
  if (bytes != 4 && bytes != 8 && bytes != 16) {
    fault(cudaErrorIllegalInstruction,
          fmt::format("cp.async of {} bytes, expected 4, 8 or 16", bytes));
  }
  if (copy.from_bytes > bytes) {
    fault(cudaErrorIllegalInstruction,
          fmt::format("cp.async of {} bytes reads {}", bytes, copy.from_bytes));
  }
  check_shared("cp.async", copy.to, bytes, bytes);
  check_aligned("cp.async", copy.from, bytes);
}

BlockRunner::Copies& copies_of(const Thread& thread) {
  return BlockRunner::here().copies[thread.rank];
}

// Completes the copies of groups before `group`. They stand in the order of their groups.
void complete(BlockRunner::Copies& copies, unsigned group) {
  const auto end = std::find_if(copies.pending.begin(), copies.pending.end(),
                                [&](const PendingCopy& copy) { return copy.group >= group; });
  std::for_each(copies.pending.begin(), end, act);
  copies.pending.erase(copies.pending.begin(), end);
}

}  // namespace

void copy_async(void* to, const void* from, unsigned bytes, unsigned from_bytes) {
  BlockRunner::Copies& copies = copies_of(running_thread("cp.async"));
  const PendingCopy copy{to, from, bytes, from_bytes, copies.groups, __builtin_return_address(0)};
  check_copy(copy);
  if (running_options().lateness == Lateness::eager) {
    act(copy);
    return;
  }
  // From now on the source may be read and the target written.
  if (from_bytes > 0) checks::read(from, from_bytes, copy.code);
  checks::write(to, bytes, copy.code);
  undefine(to, bytes);
  copies.pending.push_back(copy);
}

void copy_async_commit() {
  ++copies_of(running_thread("cp.async.commit_group")).groups;
}

void copy_async_wait(unsigned groups) {
  BlockRunner::Copies& copies = copies_of(running_thread("cp.async.wait_group"));
  if (groups <= copies.groups) complete(copies, copies.groups - groups);
}

void copy_async_wait_all() {
  BlockRunner::Copies& copies = copies_of(running_thread("cp.async.wait_all"));
  complete(copies, copies.groups + 1);
}

}  // namespace convoy::emulator::machine
