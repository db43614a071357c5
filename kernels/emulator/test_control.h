// What tests change in the emulated runtime. Settings are the process's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace convoy::emulator {

/// threads: each stream runs ahead on its thread. eager: a call returns when its work is done.
/// random: threads that wait a random while before each piece of work.
enum class StreamMode { threads, eager, random };

void set_stream_mode(StreamMode mode, unsigned seed = 0);
StreamMode stream_mode();
unsigned stream_seed();

/// Calls that can be made to fail.
enum class FailingCall { allocation, copy, launch };

/// The `nth` such call from now on (1: the next) of any thread fails as a GPU might: allocations
/// with cudaErrorMemoryAllocation, copies with cudaErrorInvalidValue, launches with
/// cudaErrorLaunchOutOfResources. 0: none.
void fail_call(FailingCall call, std::uint64_t nth);
/// Counts a call; true if it is the one that must fail.
bool must_fail(FailingCall call);

/// Bytes that a device has; less than it holds makes the next allocation fail.
void set_capacity(int device, std::size_t bytes);

/// Forgets the fault of a device, as no GPU would. The next tests of a process need it.
void revive(int device);

}  // namespace convoy::emulator
