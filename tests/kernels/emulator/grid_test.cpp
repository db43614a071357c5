#include <atomic>
#include <cmath>
#include <cstring>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "kernels/cuda/shared.h"
#include "tests/kernels/emulator/machine_support.h"
#include "tests/support/expect_error.h"

namespace convoy::emulator {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using testing::expect_error;

template <class T>
__global__ void named_kernel(T*) {}

struct Bytes {
  std::uint8_t at[100];
};

MachineOptions one_worker(Order order, std::uint64_t seed = 1) {
  MachineOptions options;
  options.order = order;
  options.seed = seed;
  options.workers = 1;
  return options;
}

/// Blocks and threads of a small grid in the order in which they start.
std::vector<unsigned> starts(const MachineOptions& options) {
  const MachineOptionsScope scope(options);
  std::vector<unsigned> starts;
  run({.grid = {3, 2}, .block = 10},
      [&] { starts.push_back((blockIdx.y * 3 + blockIdx.x) * 10 + threadIdx.x); });
  return starts;
}

TEST_CASE("every thread of every block runs once", "[emulator]") {
  for (const LaunchConfig& config :
       {LaunchConfig{}, LaunchConfig{.grid = 5, .block = 33},
        LaunchConfig{.grid = {3, 2, 4}, .block = {4, 3, 5}}, LaunchConfig{.block = {2, 8, 64}}}) {
    in_each_order([&] {
      std::vector<int> calls(config.grid.count() * config.block.count());
      run(config, [&] {
        const auto block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        const auto thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        ++calls[block * config.block.count() + thread];
      });
      CHECK(calls == std::vector<int>(calls.size(), 1));
    });
  }
}

TEST_CASE("blocks and threads start in the order asked for", "[emulator]") {
  std::vector<unsigned> ascending(60);
  for (unsigned i = 0; i < 60; ++i) ascending[i] = i;
  const std::vector<unsigned> descending(ascending.rbegin(), ascending.rend());
  CHECK(starts(one_worker(Order::forward)) == ascending);
  CHECK(starts(one_worker(Order::reverse)) == descending);
  const auto random = starts(one_worker(Order::random, 5));
  CHECK(random != ascending);
  CHECK(std::set<unsigned>(random.begin(), random.end()).size() == 60);
  CHECK(random == starts(one_worker(Order::random, 5)));
  CHECK(random != starts(one_worker(Order::random, 6)));
}

TEST_CASE("threads that never wait run on one stack", "[emulator]") {
  const MachineOptionsScope scope(one_worker(Order::forward));
  const auto stacks = [](bool wait) {
    std::set<void*> places;
    run({.block = 64}, [&] {
      places.insert(__builtin_frame_address(0));
      if (wait) __syncthreads();
    });
    return places.size();
  };
  CHECK(stacks(false) == 1);
  CHECK(stacks(true) == 64);
}

TEST_CASE("grids of several host threads share the machine", "[emulator]") {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int turn = 0; turn < 20; ++turn) {
        std::vector<int> sums(7);
        run({.grid = 7, .block = 40}, [&] {
          const int count = __syncthreads_count(threadIdx.x <= blockIdx.x);
          if (threadIdx.x == 0) sums[blockIdx.x] = count;
        });
        for (int i = 0; i < 7; ++i) wrong += sums[i] != i + 1;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}

TEST_CASE("threads keep their registers and rounding while others run", "[emulator]") {
  std::vector<double> results(200);
  run({.block = 200}, [&] {
    double a = threadIdx.x, b = 0.5, c = 3;
    unsigned long d = threadIdx.x, e = 7;
    for (int i = 0; i < 20; ++i) {
      a = std::sqrt(a + b) * c;
      d = d * 31 + e;
      __syncthreads();
      b += static_cast<double>(d % 3);
    }
    results[threadIdx.x] = a + b + static_cast<double>(d % 1000);
  });
  for (unsigned t = 0; t < 200; ++t) {
    double a = t, b = 0.5;
    unsigned long d = t;
    for (int i = 0; i < 20; ++i) {
      a = std::sqrt(a + b) * 3;
      d = d * 31 + 7;
      b += static_cast<double>(d % 3);
    }
    REQUIRE(results[t] == a + b + static_cast<double>(d % 1000));
  }
}

TEST_CASE("shared memory is 0xFF before each block and checked against the launch", "[emulator]") {
  run({.grid = 9, .block = 4, .shared_bytes = sizeof(Bytes)}, [] {
    auto& s = smem<Bytes>();
    for (unsigned i = threadIdx.x; i < sizeof s; i += 4) {
      if (s.at[i] != 0xFF) __trap();
      s.at[i] = 0;
    }
  });
  CHECK_THAT(fault_of(
                 {.shared_bytes = 99}, [] { smem<Bytes>(); }, cudaErrorIllegalAddress),
             Contains("the kernel uses 100 bytes of shared memory, its launch asked for 99"));
  for (const int offset : {100, -1}) {
    const std::string text = fault_of(
        {.block = 2, .shared_bytes = sizeof(Bytes)},
        [offset] {
          auto* bytes = reinterpret_cast<std::byte*>(&smem<Bytes>());
          if (threadIdx.x == 1) bytes[offset] = std::byte{1};
        },
        cudaErrorIllegalAddress);
    CHECK_THAT(text, Contains(offset < 0 ? "wrote before shared memory"
                                         : "wrote past the 100 bytes of shared memory"));
  }
}

TEST_CASE("launches beyond the device's limits are refused", "[emulator]") {
  const auto refusal = [](const LaunchConfig& config) {
    return fault_of(
        config, [] {}, cudaErrorInvalidConfiguration);
  };
  CHECK(refusal({.block = 1025}) == "kernel test_kernel: block.x is 1025, expected 1 to 1024");
  CHECK_THAT(refusal({.block = {32, 33}}), Contains("threads per block is 1056"));
  CHECK_THAT(refusal({.block = {1, 1, 65}}), Contains("block.z is 65, expected 1 to 64"));
  CHECK_THAT(refusal({.block = {1, 0}}), Contains("block.y is 0"));
  CHECK_THAT(refusal({.grid = 0}), Contains("grid.x is 0"));
  CHECK_THAT(refusal({.grid = {1, 65536}}), Contains("grid.y is 65536, expected 1 to 65535"));
  CHECK_THAT(refusal({.grid = {1, 1, 65536}}), Contains("grid.z is 65536"));
  CHECK_THAT(refusal({.shared_bytes = (227 << 10) + 1}), Contains("is 232449 bytes, expected"));
  CHECK(launch_refusal(
            {.grid = {0x7fffffff, 65535, 65535}, .block = {1024, 1, 1}, .shared_bytes = 227 << 10})
            .empty());
}

TEST_CASE("exceptions of kernels are faults, and the machine runs on", "[emulator]") {
  for (int turn = 0; turn < 3; ++turn) {
    const std::string text = fault_of(
        {.grid = 4, .block = {8, 16}},
        [] {
          __syncthreads();
          if (blockIdx.x == 2 && threadIdx.y == 5) {
            throw std::runtime_error("broken");
          }
          __syncthreads();
        },
        cudaErrorLaunchFailure);
    CHECK(text == "kernel test_kernel, block (2, 0, 0), thread (0, 5, 0): exception: broken");
    int threads = 0;
    run({.block = 1024}, [&] {
      __syncthreads();
      ++threads;
    });
    CHECK(threads == 1024);
  }
  const auto throws_no_exception = [] {
    throw 3;  // NOLINT(bugprone-std-exception-baseclass)
  };
  CHECK_THAT(fault_of({}, throws_no_exception, cudaErrorLaunchFailure),
             Contains("exception: of unknown type"));
  CHECK_THAT(fault_of(
                 {}, [] { __trap(); }, cudaErrorLaunchFailure),
             Contains("__trap()"));
}

TEST_CASE("device functions outside kernels are refused", "[emulator]") {
  CHECK(current_thread == nullptr);
  expect_error(ErrorKind::internal, {"__syncthreads was called outside a kernel"},
               [] { __syncthreads(); });
}

TEST_CASE("options of the machine are read from text", "[emulator]") {
  const MachineOptions options =
      parse_machine_options("order=reverse,copies=late,seed=12,workers=3");
  CHECK(options.order == Order::reverse);
  CHECK(options.lateness == Lateness::late);
  CHECK(options.seed == 12);
  CHECK(options.workers == 3);
  CHECK(parse_machine_options("").order == Order::forward);
  CHECK(parse_machine_options("order=random").order == Order::random);
  for (const char* wrong : {"order=up", "seed=x", "late", "seed="}) {
    expect_error(ErrorKind::usage, {wrong}, [&] { parse_machine_options(wrong); });
  }
}

TEST_CASE("kernels have names without being registered", "[emulator]") {
  const auto name = [](auto* kernel) { return kernel_name(reinterpret_cast<void*>(kernel)); };
  CHECK(name(named_kernel<float>) == "convoy::emulator::named_kernel<float>");
  CHECK(name(named_kernel<std::vector<int>>) ==
        "convoy::emulator::named_kernel<std::vector<int, std::allocator<int> > >");
  CHECK_THAT(kernel_name(std::strerror(0)), StartsWith("kernel at "));
}

}  // namespace
}  // namespace convoy::emulator
