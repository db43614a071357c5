// Model of `cp.async`: copies from global to shared memory that a thread issues, commits in groups
// and waits for. Whether they act at once or late is an option of the machine; a late copy's target
// holds 0xFF until then.
#pragma once

#include "kernels/emulator/machine.h"

namespace convoy::emulator::machine {

/// `cp.async`: `bytes` (4, 8 or 16) to shared memory, of which the first `from_bytes` come from
/// `from` and the others are 0. Both addresses are multiples of `bytes`.
void copy_async(void* to, const void* from, unsigned bytes, unsigned from_bytes);
/// `cp.async.commit_group`: what this thread issued since the last commit; may be nothing.
void copy_async_commit();
/// `cp.async.wait_group`: all but the last `groups` that this thread committed are done.
void copy_async_wait(unsigned groups);
/// `cp.async.wait_all`: the copies that are not committed too.
void copy_async_wait_all();

}  // namespace convoy::emulator::machine
