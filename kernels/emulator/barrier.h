// Barriers of a block. `site` is the caller's place in its source, for messages and because all
// threads must come to one barrier at the same place.
#pragma once

#include "kernels/emulator/machine.h"

namespace convoy::emulator {

// NOLINTBEGIN(bugprone-reserved-identifier): the names are CUDA's.
/// Waits for all threads of the block. A fault if some end before or come from another place.
void __syncthreads(machine::Site site = machine::Site::here());
/// The same; returns for how many threads `predicate` is not 0.
int __syncthreads_count(int predicate, machine::Site site = machine::Site::here());
int __syncthreads_and(int predicate, machine::Site site = machine::Site::here());
int __syncthreads_or(int predicate, machine::Site site = machine::Site::here());

/// PTX's `bar.sync number, threads`: waits until `threads` of them (a multiple of 32) came to this
/// barrier, one of 0 to 15, by sync or arrive, at whatever places.
void barrier_sync(int number, unsigned threads, machine::Site site = machine::Site::here());
/// `bar.arrive`: counts the thread and lets it go on.
void barrier_arrive(int number, unsigned threads, machine::Site site = machine::Site::here());

// NOLINTEND(bugprone-reserved-identifier)

}  // namespace convoy::emulator
