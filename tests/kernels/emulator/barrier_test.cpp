#include <vector>

#include "kernels/cuda/shared.h"
#include "tests/kernels/emulator/machine_support.h"

namespace convoy::emulator {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

struct Words {
  int at[1024];
};

TEST_CASE("a barrier lets every thread see what the others wrote", "[emulator]") {
  for (const unsigned threads : {1u, 31u, 33u, 256u, 1024u}) {
    in_each_order([&] {
      std::vector<int> sums(threads);
      run({.block = threads, .shared_bytes = sizeof(Words)}, [&] {
        auto& s = smem<Words>();
        const unsigned t = threadIdx.x;
        s.at[t] = static_cast<int>(t);
        int sum = 0;
        for (unsigned step = 1; step < 4; ++step) {
          __syncthreads();
          sum += s.at[(t + step) % threads];
          __syncthreads();
          s.at[t] += 1;
        }
        sums[t] = sum;
      });
      for (unsigned t = 0; t < threads; ++t) {
        const auto at = [&](unsigned i) { return static_cast<int>((t + i) % threads); };
        REQUIRE(sums[t] == at(1) + at(2) + at(3) + 0 + 1 + 2);
      }
    });
  }
}

TEST_CASE("without a barrier some order of threads shows it", "[emulator]") {
  const auto sum = [](Order order) {
    MachineOptions options;
    options.order = order;
    const MachineOptionsScope scope(options);
    int sum = 0;
    run({.block = 64, .shared_bytes = sizeof(Words)}, [&] {
      auto& s = smem<Words>();
      s.at[threadIdx.x] = 1;
      sum += s.at[(threadIdx.x + 1) % 64];
    });
    return sum;
  };
  CHECK(sum(Order::forward) == -63 + 1);  // all but the last read memory that nobody wrote
  CHECK(sum(Order::reverse) == 63 - 1);
}

TEST_CASE("a barrier counts predicates", "[emulator]") {
  in_each_order([] {
    run({.block = 100}, [] {
      const int t = static_cast<int>(threadIdx.x);
      const int count = __syncthreads_count(t < 30);
      const int all = __syncthreads_and(t >= 0);
      const int not_all = __syncthreads_and(t != 99);
      const int some = __syncthreads_or(t == 5);
      const int none = __syncthreads_or(t < 0);
      if (count != 30 || all != 1 || not_all != 0 || some != 1 || none != 0) __trap();
    });
  });
}

TEST_CASE("named barriers join a producer's warps with a consumer's", "[emulator]") {
  in_each_order([] {
    std::vector<int> seen(32);
    run({.block = 64, .shared_bytes = sizeof(Words)}, [&] {
      auto& s = smem<Words>();
      const auto lane = threadIdx.x % 32;
      for (int step = 0; step < 5; ++step) {
        if (threadIdx.x < 32) {
          s.at[lane] = step * 100 + static_cast<int>(lane);
          barrier_arrive(1, 64);  // full
          barrier_sync(2, 64);    // empty
        } else {
          barrier_sync(1, 64);
          seen[lane] += s.at[31 - lane];
          barrier_arrive(2, 64);
        }
      }
    });
    for (int lane = 0; lane < 32; ++lane) CHECK(seen[lane] == 1000 + 5 * (31 - lane));
  });
}

TEST_CASE("a thread that ends while others wait is a fault that counts them", "[emulator]") {
  const std::string text = fault_of(
      {.grid = 3, .block = 256},
      [] {
        if (blockIdx.x == 1 && threadIdx.x >= 251) return;
        __syncthreads();
      },
      cudaErrorLaunchTimeout);
  CHECK_THAT(text, StartsWith("kernel test_kernel, block (1, 0, 0), thread (0, 0, 0): deadlock: 5 "
                              "done, 251 waiting: 251 in __syncthreads at barrier_test.cpp:"));
}

TEST_CASE("a deadlock tells who waits where for what", "[emulator]") {
  const std::string text = fault_of(
      {.block = 96},
      [] {
        if (threadIdx.x < 32) __syncthreads();
        if (threadIdx.x == 40) __syncwarp();
        if (threadIdx.x >= 64) barrier_sync(3, 64);
      },
      cudaErrorLaunchTimeout);
  CHECK_THAT(text, Contains("deadlock: 31 done, 65 waiting: 32 in __syncthreads at barrier_test."));
  CHECK_THAT(text, Contains("; 1 in __syncwarp at barrier_test.cpp:"));
  CHECK_THAT(text, Contains(" of warp 1 for lanes 0xffffffff, first thread (40, 0, 0); 32 in "
                            "bar.sync at barrier_test.cpp:"));
  CHECK_THAT(text, Contains(" number 3, first thread (64, 0, 0)"));
}

TEST_CASE("threads that come to one barrier from two places are a fault", "[emulator]") {
  in_each_order([] {
    const std::string text = fault_of(
        {.block = 64},
        [] {
          if (threadIdx.x < 32) {
            __syncthreads();
          } else {
            __syncthreads();
          }
        },
        cudaErrorLaunchFailure);
    CHECK_THAT(text, Contains("divergent barrier: __syncthreads at barrier_test.cpp:"));
    CHECK_THAT(text, Contains(" threads wait in __syncthreads at barrier_test.cpp:"));
  });
}

TEST_CASE("wrong uses of named barriers are faults", "[emulator]") {
  const auto text = [](std::function<void()> thread, cudaError_t error) {
    return fault_of({.block = 64}, std::move(thread), error);
  };
  CHECK_THAT(text([] { barrier_sync(1, 32 + threadIdx.x / 32 * 32); }, cudaErrorLaunchTimeout),
             Contains("32 in bar.sync"));
  CHECK_THAT(text(
                 [] {
                   if (threadIdx.x == 0) barrier_arrive(5, 64);
                   if (threadIdx.x > 0) barrier_sync(5, 32);
                 },
                 cudaErrorLaunchFailure),
             Contains("barrier 5: bar.sync at "));
  CHECK_THAT(text([] { barrier_sync(16, 64); }, cudaErrorIllegalInstruction),
             Contains("barrier 16, expected 0 to 15"));
  CHECK_THAT(text([] { barrier_arrive(1, 33); }, cudaErrorIllegalInstruction),
             Contains("counts 33 threads, expected a multiple of 32 up to 1024"));
}

}  // namespace
}  // namespace convoy::emulator
