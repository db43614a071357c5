#include "kernels/emulator/barrier.h"

#include <fmt/format.h>

#include "kernels/emulator/block_runner.h"

namespace convoy::emulator {

using namespace machine;  // NOLINT(google-build-using-namespace)

namespace {

using Barrier = BlockRunner::Barrier;

struct Arrival {
  const char* what;
  Site site;
  unsigned number, threads;
  bool waits, same_site;
};

void check_arrival(const Barrier& barrier, const Arrival& arrival) {
  if (barrier.expected == 0) return;
  if (arrival.same_site && !(barrier.site == arrival.site)) {
    fault(
        cudaErrorLaunchFailure,
        fmt::format("divergent barrier: {} at {}, but {} threads wait in {} at {}", arrival.what,
                    describe(arrival.site), barrier.arrived, barrier.what, describe(barrier.site)));
  }
  if (barrier.expected != arrival.threads) {
    fault(cudaErrorLaunchFailure,
          fmt::format("barrier {}: {} at {} counts {} threads, {} at {} counts {}", arrival.number,
                      arrival.what, describe(arrival.site), arrival.threads, barrier.what,
                      describe(barrier.site), barrier.expected));
  }
}

void complete(BlockRunner& runner, Barrier& barrier) {
  Block& block = runner.block();
  const bool whole = barrier.waiting.count() == block.size;
  if (whole) ++block.barriers;
  barrier.waiting.each([&](unsigned rank) {
    ++block.threads[rank].barriers;
    runner.nonzero[rank] = barrier.nonzero;
  });
  if (Observer* observer = runner.grid().options.observer) {
    observer->synchronize(block, barrier.waiting, whole);
    barrier.waiting.each([&](unsigned rank) {
      if (!whole) observer->acquire(block.threads[rank], &barrier);
    });
  }
  const ThreadSet waiting = barrier.waiting;
  barrier = {};
  runner.wake(waiting);
}

// Returns how many predicates were not 0, to those that wait.
unsigned arrive(const Arrival& arrival, bool predicate) {
  Thread& thread = running_thread(arrival.what);
  BlockRunner& runner = BlockRunner::here();
  Barrier& barrier = runner.barriers[arrival.number];
  check_arrival(barrier, arrival);
  if (barrier.expected == 0) {
    barrier.expected = arrival.threads;
    barrier.what = arrival.what;
    barrier.site = arrival.site;
  }
  ++barrier.arrived;
  barrier.nonzero += predicate ? 1 : 0;
  if (arrival.waits) {
    barrier.waiting.insert(thread.rank);
  } else if (Observer* observer = runner.grid().options.observer) {
    observer->release(thread, &barrier);
  }
  if (barrier.arrived == barrier.expected) complete(runner, barrier);
  if (arrival.waits) runner.wait({arrival.what, arrival.site, false, arrival.number});
  return runner.nonzero[thread.rank];
}

unsigned arrive_all(const char* what, const Site& site, bool predicate) {
  const unsigned size = running_thread(what).block->size;
  return arrive({what, site, 0, size, true, true}, predicate);
}

void check_named(const char* what, const Site& site, int number, unsigned threads) {
  running_thread(what);
  if (number < 0 || number > 15) {
    fault(cudaErrorIllegalInstruction,
          fmt::format("{} at {}: barrier {}, expected 0 to 15", what, describe(site), number));
  }
  if (threads == 0 || threads % kWarpSize != 0 || threads > kMaxBlockThreads) {
    fault(cudaErrorIllegalInstruction,
          fmt::format("{} at {}: counts {} threads, expected a multiple of {} up to {}", what,
                      describe(site), threads, kWarpSize, kMaxBlockThreads));
  }
}

}  // namespace

void __syncthreads(Site site) {
  arrive_all("__syncthreads", site, false);
}

int __syncthreads_count(int predicate, Site site) {
  return static_cast<int>(arrive_all("__syncthreads_count", site, predicate != 0));
}

int __syncthreads_and(int predicate, Site site) {
  return arrive_all("__syncthreads_and", site, predicate == 0) == 0 ? 1 : 0;
}

int __syncthreads_or(int predicate, Site site) {
  return arrive_all("__syncthreads_or", site, predicate != 0) != 0 ? 1 : 0;
}

void barrier_sync(int number, unsigned threads, Site site) {
  check_named("bar.sync", site, number, threads);
  arrive({"bar.sync", site, static_cast<unsigned>(number), threads, true, false}, false);
}

void barrier_arrive(int number, unsigned threads, Site site) {
  check_named("bar.arrive", site, number, threads);
  arrive({"bar.arrive", site, static_cast<unsigned>(number), threads, false, false}, false);
}

}  // namespace convoy::emulator
