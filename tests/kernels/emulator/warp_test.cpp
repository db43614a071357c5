#include <bit>
#include <cstdint>
#include <vector>

#include "tests/kernels/emulator/machine_support.h"

namespace convoy::emulator {
namespace {

using Catch::Matchers::Contains;

/// What each of 32 threads returns, under each order the same.
template <class Function>
std::vector<int> lanes(Function function) {
  std::vector<int> first;
  in_each_order([&] {
    std::vector<int> values(32);
    run({.block = 32}, [&] { values[threadIdx.x] = function(static_cast<int>(threadIdx.x)); });
    if (first.empty()) first = values;
    CHECK(values == first);
  });
  return first;
}

template <class Function>
std::vector<int> expected(Function function) {
  std::vector<int> values;
  for (int lane = 0; lane < 32; ++lane) values.push_back(function(lane));
  return values;
}

TEST_CASE("shuffles read the lane that they name", "[emulator]") {
  for (const int width : {1, 2, 8, 32}) {
    const auto base = [=](int lane) { return lane / width * width; };
    CHECK(lanes([=](int lane) { return __shfl_sync(kAllLanes, lane * 3, 5, width); }) ==
          expected([=](int lane) { return (base(lane) + 5 % width) * 3; }));
    CHECK(lanes([=](int lane) { return __shfl_sync(kAllLanes, lane, lane + 1, width); }) ==
          expected([=](int lane) { return base(lane) + (lane + 1) % width; }));
    CHECK(lanes([=](int lane) { return __shfl_up_sync(kAllLanes, lane, 3, width); }) ==
          expected([=](int lane) { return lane - 3 >= base(lane) ? lane - 3 : lane; }));
    CHECK(lanes([=](int lane) { return __shfl_down_sync(kAllLanes, lane, 3, width); }) ==
          expected([=](int lane) { return lane + 3 < base(lane) + width ? lane + 3 : lane; }));
    CHECK(lanes([=](int lane) { return __shfl_xor_sync(kAllLanes, lane, 6, width); }) ==
          expected([=](int lane) { return (lane ^ 6) < base(lane) + width ? lane ^ 6 : lane; }));
  }
}

TEST_CASE("shuffles carry values of up to eight bytes", "[emulator]") {
  run({.block = 32}, [] {
    const double x = 1.0 / (threadIdx.x + 3);
    if (__shfl_xor_sync(kAllLanes, x, 1) != 1.0 / ((threadIdx.x ^ 1) + 3)) __trap();
    const long long n = 1ll << 40 | threadIdx.x;
    if (__shfl_sync(kAllLanes, n, 31) != (1ll << 40 | 31)) __trap();
    const bool odd = threadIdx.x % 2 == 1;
    if (__shfl_sync(kAllLanes, odd, 3) != true) __trap();
  });
}

TEST_CASE("a lane outside the mask reads as poison", "[emulator]") {
  run({.block = 32}, [] {
    if (threadIdx.x < 16 && __shfl_sync(0xffffu, 7, 20) != -1) __trap();
  });
  run({.block = 40}, [] {  // the second warp has eight lanes
    const int from = __shfl_down_sync(kAllLanes, static_cast<int>(threadIdx.x), 4);
    const int own = static_cast<int>(threadIdx.x);
    const int right = own < 28 ? own + 4 : own < 32 ? own : own < 36 ? own + 4 : -1;
    if (from != right) __trap();
  });
}

TEST_CASE("votes, matches and reductions of a warp", "[emulator]") {
  CHECK(lanes([](int lane) { return static_cast<int>(__ballot_sync(kAllLanes, lane % 3 == 0)); }) ==
        std::vector<int>(32, 0x49249249));
  CHECK(lanes([](int lane) { return __any_sync(kAllLanes, lane == 9); }) ==
        expected([](int) { return 1; }));
  CHECK(lanes([](int lane) { return __all_sync(kAllLanes, lane != 9); }) ==
        expected([](int) { return 0; }));
  CHECK(lanes([](int lane) {
          return static_cast<int>(__match_any_sync(kAllLanes, lane % 2 + 5u));
        }) == expected([](int lane) { return lane % 2 == 0 ? 0x55555555 : 0xaaaaaaaa; }));
  CHECK(lanes([](int lane) { return __reduce_add_sync(kAllLanes, lane - 20); }) ==
        std::vector<int>(32, 31 * 16 - 640));
  CHECK(lanes([](int lane) { return __reduce_min_sync(kAllLanes, lane - 20); }) ==
        std::vector<int>(32, -20));
  CHECK(lanes([](int lane) { return __reduce_max_sync(kAllLanes, lane - 20); }) ==
        std::vector<int>(32, 11));
  run({.block = 32}, [] {
    const unsigned x = 0xf0000000u + threadIdx.x;
    bool right = __reduce_add_sync(kAllLanes, threadIdx.x) == 31 * 16;
    right = right && __reduce_min_sync(kAllLanes, x) == 0xf0000000u;
    right = right && __reduce_max_sync(kAllLanes, x) == 0xf000001fu;
    right = right && __reduce_and_sync(kAllLanes, x) == 0xf0000000u;
    right = right && __reduce_or_sync(kAllLanes, x) == 0xf000001fu;
    right = right && __reduce_xor_sync(kAllLanes, x | 0x80u << threadIdx.x % 2) == 0;
    if (!right) __trap();
  });
}

TEST_CASE("parts of a warp diverge, each with its mask, and join again", "[emulator]") {
  CHECK(lanes([](int lane) {
          int sum = 0;
          if (lane < 16) {
            sum = __reduce_add_sync(0x0000ffffu, 1);
            if (lane % 2 == 0) {
              sum += __shfl_sync(0x5555u, lane, 14);
            } else {
              for (int i = 0; i < lane % 4; ++i) {
                sum += __shfl_xor_sync(lane % 4 == 1 ? 0x2222u : 0x8888u, lane, 4);
              }
              __syncwarp(0xaaaau);
            }
          } else {
            sum = __reduce_add_sync(0xffff0000u, 2);
          }
          return sum + __shfl_sync(kAllLanes, sum, 31);
        }) == expected([](int lane) {
          if (lane >= 16) return 64;
          if (lane % 2 == 0) return 16 + 14 + 32;
          return 16 + lane % 4 * (lane ^ 4) + 32;
        }));
}

TEST_CASE("1024 threads reduce by shuffles and shared memory", "[emulator]") {
  in_each_order([] {
    std::vector<int> sums(2);
    run({.grid = 2, .block = 1024, .shared_bytes = 32 * sizeof(int)}, [&] {
      auto* of_warp = static_cast<int*>(shared_memory(32 * sizeof(int)));
      int sum = static_cast<int>(threadIdx.x + blockIdx.x);
      for (int bits = 16; bits > 0; bits /= 2) sum += __shfl_xor_sync(kAllLanes, sum, bits);
      if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
      __syncthreads();
      if (threadIdx.x < 32) {
        const int total = __reduce_add_sync(kAllLanes, of_warp[threadIdx.x]);
        if (threadIdx.x == 0) sums[blockIdx.x] = total;
      }
    });
    CHECK(sums == std::vector<int>{1023 * 512, 1023 * 512 + 1024});
  });
}

TEST_CASE("lanes that have not ended are active", "[emulator]") {
  const MachineOptionsScope scope(MachineOptions{});
  run({.block = 34}, [] {
    if (threadIdx.x == 0) return;
    __syncwarp(threadIdx.x < 32 ? 0xfffffffeu : kAllLanes);
    const unsigned active = __activemask();
    if (threadIdx.x == 1 && active != 0xfffffffeu) __trap();
    if (threadIdx.x == 32 && active != 3) __trap();
  });
}

TEST_CASE("wrong masks and places of warp functions are faults", "[emulator]") {
  in_each_order([] {
    const auto text = [](std::function<void()> thread, cudaError_t error) {
      return fault_of({.block = 32}, std::move(thread), error);
    };
    CHECK_THAT(text([] { __syncwarp(threadIdx.x < 16 ? kAllLanes : 0xffff0001u); },
                    cudaErrorLaunchFailure),
               Contains("divergent warp: __syncwarp with mask 0x"));
    CHECK_THAT(text([] { __syncwarp(threadIdx.x < 16 ? kAllLanes : 0xffff0000u); },
                    cudaErrorLaunchTimeout),
               Contains("deadlock: 16 done, 16 waiting: 16 in __syncwarp at warp_test.cpp:"));
    const auto two_places = [] {
      if (threadIdx.x < 16) {
        __shfl_sync(kAllLanes, 1, 0);
      } else {
        __shfl_sync(kAllLanes, 1, 0);
      }
    };
    CHECK_THAT(text(two_places, cudaErrorLaunchFailure),
               Contains("wait in __shfl_sync with mask 0xffffffff at warp_test.cpp:"));
    CHECK_THAT(text([] { threadIdx.x == 0 ? __any_sync(~0u, 1) : __all_sync(~0u, 1); },
                    cudaErrorLaunchFailure),
               Contains("divergent warp"));
    CHECK_THAT(text([] { __syncwarp(1); }, cudaErrorLaunchFailure),
               Contains("__syncwarp at warp_test.cpp:"));
    CHECK_THAT(text(
                   [] {
                     if (threadIdx.x != 4) __any_sync(kAllLanes, 1);
                   },
                   cudaErrorLaunchTimeout),
               Contains("deadlock: 1 done, 31 waiting: 31 in __any_sync at warp_test.cpp:"));
  });
  CHECK_THAT(fault_of(
                 {.block = 32}, [] { __syncwarp(~(1u << threadIdx.x)); }, cudaErrorLaunchFailure),
             Contains("mask 0xfffffffe lacks the calling lane 0"));
  CHECK_THAT(fault_of(
                 {}, [] { __shfl_sync(1, 0, 0, 33); }, cudaErrorLaunchFailure),
             Contains("__shfl_sync: width is 33, expected a power of two up to 32"));
}

TEST_CASE("a collective's last lane computes for all", "[emulator]") {
  in_each_order([] {
    int finished = 0;
    run({.block = 64}, [&] {
      std::array<float, 3> operand = {static_cast<float>(threadIdx.x), 0, 0};
      collective("test", kAllLanes, Site::here(), operand, [&](Lanes<std::array<float, 3>> all) {
        ++finished;
        float sum = 0;
        all.each([&](unsigned, const auto& mine) { sum += mine[0]; });
        all.each([&](unsigned lane, auto& mine) {
          mine[1] = sum;
          mine[2] = static_cast<float>(lane);
        });
      });
      const float sum = threadIdx.x < 32 ? 496.0f : 1520.0f;
      if (operand[1] != sum || operand[2] != static_cast<float>(threadIdx.x % 32)) __trap();
    });
    CHECK(finished == 2);
  });
  CHECK_THAT(fault_of(
                 {.block = 32},
                 [] {
                   char nothing = 0;
                   collective("test", kAllLanes, Site::here(), nothing,
                              [](Lanes<char>) { fault(cudaErrorMisalignedAddress, "bad rows"); });
                 },
                 cudaErrorMisalignedAddress),
             Contains("thread (31, 0, 0): bad rows"));
}

}  // namespace
}  // namespace convoy::emulator
