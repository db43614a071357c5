#include "kernels/emulator/mbarrier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/emulator/block_runner.h"

namespace convoy::emulator::machine {
namespace {

using Phase = BlockRunner::Phase;

constexpr unsigned kMostArrivals = (1u << 20) - 1;
constexpr Mbarrier kMark = 0x6d62617272696572;  // in its memory while it is in use

Phase* find(const Mbarrier* barrier) {
  auto& phases = BlockRunner::here().phases;
  const auto at = std::find_if(phases.begin(), phases.end(),
                               [&](const Phase& phase) { return phase.object == barrier; });
  return at == phases.end() ? nullptr : &*at;
}

Phase& phase_of(const char* what, const Mbarrier* barrier) {
  running_thread(what);
  check_shared(what, barrier, sizeof *barrier, sizeof *barrier);
  checks::atomic(barrier, sizeof *barrier);
  Phase* phase = find(barrier);
  if (phase == nullptr) {
    fault(cudaErrorLaunchFailure, fmt::format("{}: the mbarrier was not initialised", what));
  }
  if (*barrier != kMark) {
    fault(cudaErrorLaunchFailure, fmt::format("{}: the mbarrier's memory was overwritten", what));
  }
  return *phase;
}

void complete_if_due(Phase& phase) {
  if (phase.pending != 0 || phase.bytes != 0) return;
  phase.pending = phase.count;
  phase.parity ^= 1;
  const ThreadSet waiting = std::exchange(phase.waiting, {});
  BlockRunner::here().wake(waiting);
}

void act(const BlockRunner::BulkCopy& copy) {
  checks::read(copy.from, copy.bytes);
  checks::write(copy.to, copy.bytes);
  std::memcpy(copy.to, copy.from, copy.bytes);
}

void note_release(const Mbarrier* barrier) {
  if (auto* observer = running_options().observer) observer->release(*current_thread, barrier);
}

// Late copies act when nothing else keeps the phase open and a thread waits for it.
void act_late(Phase& phase) {
  if (phase.pending != 0 || phase.copies.empty()) return;
  for (const auto& copy : std::exchange(phase.copies, {})) {
    act(copy);
    note_release(static_cast<const Mbarrier*>(phase.object));
    phase.bytes -= static_cast<std::int64_t>(copy.bytes);
  }
  complete_if_due(phase);
}

bool is_complete(Phase& phase, unsigned parity) {
  if (phase.parity == parity) act_late(phase);
  if (phase.parity == parity) return false;
  if (auto* observer = running_options().observer) {
    observer->acquire(*current_thread, phase.object);
  }
  return true;
}

void check_parity(const char* what, unsigned parity) {
  if (parity > 1) fault(cudaErrorIllegalInstruction, fmt::format("{}: parity {}", what, parity));
}

void arrive(const char* what, Mbarrier* barrier, unsigned arrivals, std::size_t bytes) {
  Phase& phase = phase_of(what, barrier);
  note_release(barrier);
  phase.bytes += static_cast<std::int64_t>(bytes);
  if (arrivals > phase.pending) {
    fault(cudaErrorLaunchFailure, fmt::format("{}: {} arrivals, but the phase waits for {} of {}",
                                              what, arrivals, phase.pending, phase.count));
  }
  phase.pending -= arrivals;
  complete_if_due(phase);
  if (phase.waiting.count() > 0) act_late(phase);
}

}  // namespace

void mbarrier_init(Mbarrier* barrier, unsigned arrivals) {
  running_thread("mbarrier.init");
  check_shared("mbarrier.init", barrier, sizeof *barrier, sizeof *barrier);
  if (arrivals < 1 || arrivals > kMostArrivals) {
    fault(cudaErrorIllegalInstruction,
          fmt::format("mbarrier.init: {} arrivals, expected 1 to {}", arrivals, kMostArrivals));
  }
  if (find(barrier) != nullptr) {
    fault(cudaErrorLaunchFailure, "mbarrier.init: the mbarrier is in use already");
  }
  checks::write(barrier, sizeof *barrier);
  *barrier = kMark;
  Phase phase;
  phase.object = barrier;
  phase.count = phase.pending = arrivals;
  BlockRunner::here().phases.push_back(std::move(phase));
}

void mbarrier_inval(Mbarrier* barrier) {
  const Phase& phase = phase_of("mbarrier.inval", barrier);
  if (phase.waiting.count() > 0) {
    fault(cudaErrorLaunchFailure,
          fmt::format("mbarrier.inval: {} threads wait", phase.waiting.count()));
  }
  auto& phases = BlockRunner::here().phases;
  phases.erase(phases.begin() + (&phase - phases.data()));
  undefine(barrier, sizeof *barrier);
}

void mbarrier_arrive(Mbarrier* barrier, unsigned arrivals) {
  arrive("mbarrier.arrive", barrier, arrivals, 0);
}

void mbarrier_expect_tx(Mbarrier* barrier, std::size_t bytes) {
  phase_of("mbarrier.expect_tx", barrier).bytes += static_cast<std::int64_t>(bytes);
}

void mbarrier_arrive_expect_tx(Mbarrier* barrier, std::size_t bytes) {
  arrive("mbarrier.arrive.expect_tx", barrier, 1, bytes);
}

void mbarrier_complete_tx(Mbarrier* barrier, std::size_t bytes) {
  Phase& phase = phase_of("mbarrier.complete_tx", barrier);
  note_release(barrier);
  phase.bytes -= static_cast<std::int64_t>(bytes);
  complete_if_due(phase);
}

bool mbarrier_test_wait(Mbarrier* barrier, unsigned parity, Site) {
  check_parity("mbarrier.test_wait", parity);
  if (is_complete(phase_of("mbarrier.test_wait", barrier), parity)) return true;
  BlockRunner::here().yield();
  return is_complete(phase_of("mbarrier.test_wait", barrier), parity);
}

void mbarrier_wait(Mbarrier* barrier, unsigned parity, Site site) {
  check_parity("mbarrier.try_wait", parity);
  for (;;) {
    Phase& phase = phase_of("mbarrier.try_wait", barrier);
    if (is_complete(phase, parity)) return;
    phase.waiting.insert(current_thread->rank);
    BlockRunner::here().wait({"mbarrier.try_wait", site, false, 0});
  }
}

void copy_bulk(void* to, const void* from, std::size_t bytes, Mbarrier* barrier) {
  Phase& phase = phase_of("cp.async.bulk", barrier);
  if (bytes % 16 != 0) {
    fault(cudaErrorIllegalInstruction,
          fmt::format("cp.async.bulk of {} bytes, expected a multiple of 16", bytes));
  }
  check_shared("cp.async.bulk", to, bytes, 16);
  check_aligned("cp.async.bulk", from, 16);
  if (running_options().lateness == Lateness::eager) {
    act({to, from, bytes});
    mbarrier_complete_tx(barrier, bytes);
    return;
  }
  undefine(to, bytes);
  phase.copies.push_back({to, from, bytes});
  if (phase.waiting.count() > 0) act_late(phase);
}

}  // namespace convoy::emulator::machine
