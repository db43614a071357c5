#include <vector>

#include "kernels/cuda/shared.h"
#include "tests/kernels/emulator/machine_support.h"

namespace convoy::emulator {
namespace {

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

TEST_CASE("a thread that ends while others wait is a fault that counts them", "[emulator]") {
  const std::string text = fault_of(
      {.grid = 3, .block = 256},
      [] {
        if (blockIdx.x == 1 && threadIdx.x >= 251) return;
        __syncthreads();
      },
      cudaErrorLaunchTimeout);
  CHECK_THAT(text, Catch::Matchers::StartsWith("kernel test_kernel, block (1, 0, 0), thread (0, 0, "
                                               "0): deadlock: 5 done, 251 waiting: 251 in "
                                               "__syncthreads at barrier_test.cpp:"));
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
    CHECK_THAT(text, Catch::Matchers::Contains("divergent barrier: __syncthreads at "));
  });
}

}  // namespace
}  // namespace convoy::emulator
