// Model of `mbarrier`, barriers in shared memory that count arrivals and bytes, and of the bulk
// copies that complete on them. A phase is complete when all its arrivals and bytes came; waits
// name phases by parity, the first one is 0, and the one before it counts as complete.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/emulator/machine.h"

namespace convoy::emulator::machine {

/// An mbarrier's eight bytes in shared memory.
using Mbarrier = std::uint64_t;

/// `mbarrier.init`; `arrivals` of each phase, 1 to 2^20-1. A fault where one is in use already.
void mbarrier_init(Mbarrier* barrier, unsigned arrivals);
/// `mbarrier.inval`: the memory may be used for something else. A fault while threads wait.
void mbarrier_inval(Mbarrier* barrier);
/// `mbarrier.arrive`.
void mbarrier_arrive(Mbarrier* barrier, unsigned arrivals = 1);
/// `mbarrier.expect_tx`: the phase waits for `bytes` more.
void mbarrier_expect_tx(Mbarrier* barrier, std::size_t bytes);
/// `mbarrier.arrive.expect_tx`.
void mbarrier_arrive_expect_tx(Mbarrier* barrier, std::size_t bytes);
/// What a copy does that is done: takes `bytes` off.
void mbarrier_complete_tx(Mbarrier* barrier, std::size_t bytes);
/// `mbarrier.test_wait.parity`: whether the phase is complete; lets other threads run.
bool mbarrier_test_wait(Mbarrier* barrier, unsigned parity, Site site = Site::here());
/// `mbarrier.try_wait.parity` in a loop: waits until the phase is complete.
void mbarrier_wait(Mbarrier* barrier, unsigned parity, Site site = Site::here());

/// `cp.async.bulk.shared.global`: `bytes`, a multiple of 16 as both addresses are, which the
/// barrier counts when they are there.
void copy_bulk(void* to, const void* from, std::size_t bytes, Mbarrier* barrier);

}  // namespace convoy::emulator::machine
