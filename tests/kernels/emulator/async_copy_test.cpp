#include "kernels/emulator/async_copy.h"

#include <vector>

#include "kernels/cuda/shared.h"
#include "tests/kernels/emulator/machine_support.h"

namespace convoy::emulator {
namespace {

using Catch::Matchers::Contains;

struct Stages {
  alignas(16) int at[4][64];
};
constexpr LaunchConfig kOneBlock = {.block = 16, .shared_bytes = sizeof(Stages)};

/// Calls use(late) for both kinds of copies.
template <class Use>
void in_each_lateness(Use use) {
  for (const bool late : {false, true}) {
    MachineOptions options = machine_options();
    options.lateness = late ? Lateness::late : Lateness::eager;
    const MachineOptionsScope scope(options);
    INFO((late ? "late" : "eager"));
    use(late);
  }
}

TEST_CASE("a pipeline of asynchronous copies gives the same early and late", "[emulator]") {
  alignas(16) int from[10][64];
  for (int i = 0; i < 640; ++i) from[i / 64][i % 64] = i;
  in_each_order([&] {
    in_each_lateness([&](bool) {
      std::vector<int> sums(64);
      run(kOneBlock, [&] {
        auto& s = smem<Stages>();
        const unsigned mine = threadIdx.x * 4;
        const auto issue = [&](int step) {
          if (step < 10) copy_async(&s.at[step % 4][mine], &from[step][mine], 16, 16);
          copy_async_commit();
        };
        for (int step = 0; step < 3; ++step) issue(step);
        for (int step = 0; step < 10; ++step) {
          copy_async_wait(2);
          __syncthreads();
          for (unsigned i = 0; i < 4; ++i) sums[mine + i] += s.at[step % 4][63 - mine - i];
          issue(step + 3);
        }
      });
      for (int i = 0; i < 64; ++i) REQUIRE(sums[i] == 10 * (63 - i) + 64 * 45);
    });
  });
}

TEST_CASE("late copies show a wait that is missing and a source that changes", "[emulator]") {
  in_each_lateness([&](bool late) {
    alignas(16) int from[4] = {1, 2, 3, 4};
    run({.shared_bytes = sizeof(Stages)}, [&] {
      auto& s = smem<Stages>();
      s.at[0][0] = 9;
      copy_async(s.at[0], from, 16, 16);
      const int before_wait = s.at[0][0];
      copy_async_commit();
      copy_async_commit();
      copy_async_wait(2);
      const int too_early = s.at[0][1];
      from[0] = 5;
      copy_async_wait(1);
      if (before_wait != (late ? -1 : 1) || too_early != (late ? -1 : 2)) __trap();
      if (s.at[0][0] != (late ? 5 : 1) || s.at[0][3] != 4) __trap();
    });
  });
}

TEST_CASE("what an asynchronous copy does not read is zero", "[emulator]") {
  in_each_lateness([&](bool) {
    alignas(16) const int from[4] = {1, 2, 3, 4};
    run({.shared_bytes = sizeof(Stages)}, [&] {
      auto& s = smem<Stages>();
      copy_async(s.at[0], from, 16, 8);
      copy_async(s.at[1], from, 16, 0);
      copy_async(s.at[2], from + 2, 8, 8);
      copy_async(s.at[3], from + 3, 4, 4);
      copy_async_wait_all();
      const int* a = s.at[0];
      if (a[0] != 1 || a[1] != 2 || a[2] != 0 || a[3] != 0) __trap();
      if (s.at[1][0] != 0 || s.at[1][3] != 0) __trap();
      if (s.at[2][1] != 4 || s.at[2][2] != -1 || s.at[3][0] != 4 || s.at[3][1] != -1) __trap();
    });
  });
}

TEST_CASE("each thread waits for its own copies alone", "[emulator]") {
  MachineOptions options;
  options.lateness = Lateness::late;
  const MachineOptionsScope scope(options);
  alignas(16) const int from[4] = {1, 2, 3, 4};
  run({.block = 2, .shared_bytes = sizeof(Stages)}, [&] {
    auto& s = smem<Stages>();
    copy_async(s.at[threadIdx.x], from, 16, 16);
    copy_async_commit();
    __syncthreads();
    if (threadIdx.x == 1) copy_async_wait(0);
    __syncthreads();
    if (s.at[0][0] != -1 || s.at[1][0] != 1) __trap();
    __syncthreads();
    copy_async_wait(0);
  });
}

TEST_CASE("wrong asynchronous copies are faults", "[emulator]") {
  alignas(16) int from[8] = {};
  const auto text = [&](auto copy, cudaError_t error) {
    return fault_of(
        {.shared_bytes = sizeof(Stages)}, [&] { copy(smem<Stages>().at[0]); }, error);
  };
  CHECK_THAT(text([&](int* s) { copy_async(s, from, 12, 12); }, cudaErrorIllegalInstruction),
             Contains("cp.async of 12 bytes, expected 4, 8 or 16"));
  CHECK_THAT(text([&](int* s) { copy_async(s, from, 4, 8); }, cudaErrorIllegalInstruction),
             Contains("cp.async of 4 bytes reads 8"));
  CHECK_THAT(text([&](int* s) { copy_async(s + 1, from, 16, 16); }, cudaErrorMisalignedAddress),
             Contains("is no multiple of 16"));
  CHECK_THAT(text([&](int* s) { copy_async(s, from + 1, 8, 8); }, cudaErrorMisalignedAddress),
             Contains("is no multiple of 8"));
  CHECK_THAT(text([&](int* s) { copy_async(s + 256, from, 16, 16); }, cudaErrorIllegalAddress),
             Contains("are not in the block's 1024 bytes of shared memory"));
  CHECK_THAT(text([&](int*) { copy_async(from, from, 4, 4); }, cudaErrorIllegalAddress),
             Contains("cp.async: 4 bytes at "));
}

}  // namespace
}  // namespace convoy::emulator
