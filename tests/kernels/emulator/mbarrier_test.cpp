#include "kernels/emulator/mbarrier.h"

#include <vector>

#include "kernels/cuda/shared.h"
#include "tests/kernels/emulator/machine_support.h"

namespace convoy::emulator {
namespace {

using Catch::Matchers::Contains;

constexpr int kStages = 2;

struct Ring {
  alignas(16) int at[kStages][64];
  Mbarrier full[kStages], empty[kStages];
};
constexpr std::size_t kRow = sizeof(Ring::at[0]);

/// Runs `thread` in one block of `threads` whose thread 0 set up a barrier of `arrivals`.
std::string fault_with(unsigned threads, unsigned arrivals, std::function<void(Ring&)> thread,
                       cudaError_t error) {
  return fault_of(
      {.block = threads, .shared_bytes = sizeof(Ring)},
      [&] {
        auto& s = smem<Ring>();
        if (threadIdx.x == 0) mbarrier_init(s.full, arrivals);
        __syncthreads();
        thread(s);
      },
      error);
}

TEST_CASE("a producer and consumers hand stages over by mbarriers", "[emulator]") {
  alignas(16) int from[9][64];
  for (int i = 0; i < 9 * 64; ++i) from[i / 64][i % 64] = i;
  for (const Lateness lateness : {Lateness::eager, Lateness::late}) {
    in_each_order([&] {
      MachineOptions options = machine_options();
      options.lateness = lateness;
      const MachineOptionsScope scope(options);
      std::vector<int> sums(64);
      run({.block = 96, .shared_bytes = sizeof(Ring)}, [&] {
        auto& s = smem<Ring>();
        if (threadIdx.x == 0) {
          for (int i = 0; i < kStages; ++i) {
            mbarrier_init(&s.full[i], 1);
            mbarrier_init(&s.empty[i], 64);
          }
        }
        __syncthreads();
        if (threadIdx.x == 0) {
          for (unsigned step = 0; step < 9; ++step) {
            const unsigned stage = step % kStages;
            mbarrier_wait(&s.empty[stage], (step / kStages + 1) % 2);
            mbarrier_arrive_expect_tx(&s.full[stage], kRow);
            copy_bulk(s.at[stage], from[step], kRow, &s.full[stage]);
          }
        } else if (threadIdx.x >= 32) {
          const unsigned mine = threadIdx.x - 32;
          for (unsigned step = 0; step < 9; ++step) {
            const unsigned stage = step % kStages, parity = step / kStages % 2;
            if (step % 2 == 0) {
              mbarrier_wait(&s.full[stage], parity);
            } else {
              while (!mbarrier_test_wait(&s.full[stage], parity)) {
              }
            }
            sums[mine] += s.at[stage][63 - mine];
            mbarrier_arrive(&s.empty[stage]);
          }
        }
      });
      for (int i = 0; i < 64; ++i) REQUIRE(sums[i] == 9 * (63 - i) + 64 * 36);
    });
  }
}

TEST_CASE("late bulk copies act when a thread waits for them", "[emulator]") {
  MachineOptions options;
  options.lateness = Lateness::late;
  const MachineOptionsScope scope(options);
  alignas(16) int from[64] = {1};
  run({.shared_bytes = sizeof(Ring)}, [&] {
    auto& s = smem<Ring>();
    mbarrier_init(s.full, 1);
    mbarrier_expect_tx(s.full, kRow);
    copy_bulk(s.at[0], from, kRow, s.full);
    mbarrier_arrive(s.full);
    if (s.at[0][0] != -1) __trap();
    from[0] = 2;
    mbarrier_wait(s.full, 0);
    if (s.at[0][0] != 2) __trap();
    mbarrier_inval(s.full);
    mbarrier_init(s.full, 3);  // its memory is free again
    mbarrier_arrive(s.full, 2);
    if (mbarrier_test_wait(s.full, 0) || !mbarrier_test_wait(s.full, 1)) __trap();
    mbarrier_complete_tx(s.full, 0);
    mbarrier_arrive(s.full);
    if (!mbarrier_test_wait(s.full, 0) || mbarrier_test_wait(s.full, 1)) __trap();
  });
}

TEST_CASE("wrong uses of mbarriers are faults", "[emulator]") {
  alignas(16) static const int from[64] = {};
  CHECK_THAT(fault_with(
                 1, 1, [](Ring& s) { mbarrier_init(s.full, 1); }, cudaErrorLaunchFailure),
             Contains("mbarrier.init: the mbarrier is in use already"));
  CHECK_THAT(fault_with(
                 1, 0, [](Ring&) {}, cudaErrorIllegalInstruction),
             Contains("0 arrivals, expected 1 to 1048575"));
  CHECK_THAT(fault_with(
                 1, 1, [](Ring& s) { mbarrier_arrive(s.empty); }, cudaErrorLaunchFailure),
             Contains("mbarrier.arrive: the mbarrier was not initialised"));
  CHECK_THAT(fault_with(
                 1, 2, [](Ring& s) { mbarrier_arrive(s.full, 3); }, cudaErrorLaunchFailure),
             Contains("3 arrivals, but the phase waits for 2 of 2"));
  CHECK_THAT(fault_with(
                 1, 1,
                 [](Ring& s) {
                   s.full[0] = 0;
                   mbarrier_arrive(s.full);
                 },
                 cudaErrorLaunchFailure),
             Contains("the mbarrier's memory was overwritten"));
  CHECK_THAT(fault_with(
                 1, 1, [](Ring& s) { mbarrier_wait(s.full, 2); }, cudaErrorIllegalInstruction),
             Contains("mbarrier.try_wait: parity 2"));
  CHECK_THAT(
      fault_with(
          1, 1, [](Ring& s) { copy_bulk(s.at[0], from, 24, s.full); }, cudaErrorIllegalInstruction),
      Contains("cp.async.bulk of 24 bytes, expected a multiple of 16"));
  CHECK_THAT(fault_with(
                 2, 1,
                 [](Ring& s) {
                   if (threadIdx.x == 0) mbarrier_wait(s.full, 0);
                   if (threadIdx.x == 1) mbarrier_inval(s.full);
                 },
                 cudaErrorLaunchFailure),
             Contains("mbarrier.inval: 1 threads wait"));
  CHECK_THAT(fault_with(
                 3, 2,
                 [](Ring& s) {
                   if (threadIdx.x > 0) mbarrier_wait(s.full, 0);
                   if (threadIdx.x == 0) mbarrier_arrive(s.full);
                 },
                 cudaErrorLaunchTimeout),
             Contains("deadlock: 1 done, 2 waiting: 2 in mbarrier.try_wait at mbarrier_test.cpp:"));
}

}  // namespace
}  // namespace convoy::emulator
