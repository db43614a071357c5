// Launches of the emulated runtime: a device's limits, streams, pointers among the arguments.
#include "kernels/cuda/launch.h"

#include "tests/kernels/emulator/runtime_support.h"
#include "tests/support/expect_error.h"

namespace convoy::emulator {
namespace {

using testing::expect_error;

struct Pair {
  const int* from;
  int* to;
};

__global__ void nothing() {}

__global__ void add_one(int* values, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] += 1;
}

__global__ void copy_one(Pair pair) {
  *pair.to = *pair.from;
}

void expect_refusal(const std::vector<std::string_view>& parts, const std::function<void()>& call) {
  expect_error(ErrorKind::internal, parts, call);
}

}  // namespace

TEST_CASE("emulated launch: the whole grid runs, in the stream's order") {
  for (StreamMode mode : {StreamMode::threads, StreamMode::eager, StreamMode::random}) {
    const StreamModeScope scope(mode);
    const TestStream stream;
    const TestMemory values(100 * sizeof(int));
    REQUIRE(cudaMemsetAsync(values.as(), 0, 100 * sizeof(int), stream) == cudaSuccess);
    const LaunchConfig config{.grid = 4, .block = 32, .stream = stream};
    for (int i = 0; i < 3; ++i) launch(add_one, config, values.as<int>(), 100);
    REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
    for (int i = 0; i < 100; ++i) CHECK(read_value<int>(values.as<int>() + i) == 3);
  }
}

TEST_CASE("emulated launch: limits of blocks, grids and shared memory") {
  const TestStream stream;
  auto refuses = [&](LaunchConfig config, std::string_view error, std::string_view limit) {
    config.stream = stream;
    expect_refusal({error, "nothing", limit}, [&] { launch(nothing, config); });
  };
  const std::string_view configuration = "cudaErrorInvalidConfiguration";
  refuses({.block = 1025}, configuration, "block.x is 1025, expected 1 to 1024");
  refuses({.block = {1, 1, 65}}, configuration, "block.z is 65, expected 1 to 64");
  refuses({.block = {0, 1, 1}}, configuration, "block.x is 0");
  refuses({.grid = {1, 0, 1}}, configuration, "grid.y is 0");
  refuses({.grid = {1, 65536, 1}}, configuration, "grid.y is 65536, expected 1 to 65535");
  refuses({.grid = {1, 1, 65536}}, configuration, "grid.z is 65536");
  refuses({.block = {32, 32, 2}}, configuration, "threads per block is 2048");
  refuses({.shared_bytes = (227 << 10) + 1}, "cudaErrorInvalidValue", "expected at most 232448");
  launch(nothing, {.block = {16, 1, 64}, .shared_bytes = 227 << 10, .stream = stream});
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
}

TEST_CASE("emulated launch: streams must be there and of the thread's device") {
  expect_refusal({"cudaErrorInvalidResourceHandle", "no implicit default stream"},
                 [] { launch(nothing, {}); });
  const TestStream stream;
  const OnDevice on(40);
  expect_refusal({"cudaErrorInvalidResourceHandle", "emu:0", "emu:40"},
                 [&] { launch(nothing, {.stream = stream}); });
}

TEST_CASE("emulated launch: pointers to memory that the kernel cannot use") {
  const OnDevice on(41);
  const TestStream stream;
  const LaunchConfig config{.stream = stream};
  const TestMemory here(sizeof(int));
  void* other = nullptr;
  {
    const OnDevice there(42);
    REQUIRE(cudaMalloc(&other, sizeof(int)) == cudaSuccess);
    REQUIRE(cudaMemset(other, 0, sizeof(int)) == cudaSuccess);
  }
  REQUIRE(cudaSetDevice(41) == cudaSuccess);
  auto* const there = static_cast<int*>(other);
  int host = 0;
  const std::string_view illegal = "cudaErrorIllegalAddress";
  expect_refusal({illegal, "memory of the host"}, [&] { launch(add_one, config, &host, 1); });
  expect_refusal({illegal, "a pointer to emu:42, whose memory emu:41 has no access to"},
                 [&] { launch(add_one, config, there, 1); });
  expect_refusal({illegal, "emu:42"}, [&] {
    launch(copy_one, config, Pair{there, here.as<int>()});
  });
  REQUIRE(cudaDeviceEnablePeerAccess(42, 0) == cudaSuccess);
  launch(copy_one, config, Pair{there, here.as<int>()});
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(read_value<int>(here.as()) == 0);
  REQUIRE(cudaDeviceDisablePeerAccess(42) == cudaSuccess);
  REQUIRE(cudaFree(other) == cudaSuccess);
  expect_refusal({illegal, "freed allocation"}, [&] { launch(add_one, config, there, 1); });
  expect_refusal({illegal, "no allocation of emu:42"},
                 [&] { launch(add_one, config, there + (1 << 20), 1); });
  launch(add_one, config, static_cast<int*>(nullptr), 0);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
}

TEST_CASE("emulated launch: memory that goes while the launch waits is a fault") {
  const OnDevice on(43);
  const TestStream stream, other;
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, sizeof(int)) == cudaSuccess);
  Gate gate;
  gate.close(stream);
  launch(add_one, {.stream = stream}, static_cast<int*>(memory), 1);
  REQUIRE(cudaFreeAsync(memory, other) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(other) == cudaSuccess);
  gate.open();
  CHECK(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress);
  revive(43);
}

TEST_CASE("emulated launch: the n-th fails when told to") {
  const TestStream stream;
  fail_call(FailingCall::launch, 2);
  launch(nothing, {.stream = stream});
  expect_refusal({"cudaErrorLaunchOutOfResources"}, [&] { launch(nothing, {.stream = stream}); });
  launch(nothing, {.stream = stream});
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
}

}  // namespace convoy::emulator
