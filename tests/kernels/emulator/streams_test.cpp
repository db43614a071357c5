// Streams and events of the emulated runtime: order, independence, waiting, modes, errors.
#include "kernels/emulator/streams.h"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cuda/runtime_extras.h"
#include "kernels/emulator/grid.h"
#include "tests/kernels/emulator/runtime_support.h"

namespace convoy::emulator {
namespace {

void call(cudaStream_t stream, std::function<void()> work) {
  const cudaError_t result = queue_work(stream, {std::move(work)});
  REQUIRE(result == cudaSuccess);
}

}  // namespace

TEST_CASE("emulated streams: work runs in order") {
  for (StreamMode mode : {StreamMode::threads, StreamMode::eager, StreamMode::random}) {
    const StreamModeScope scope(mode, 3);
    const TestStream stream;
    std::vector<int> seen;
    for (int i = 0; i < 50; ++i) call(stream, [&seen, i] { seen.push_back(i); });
    REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
    REQUIRE(seen.size() == 50);
    for (int i = 0; i < 50; ++i) CHECK(seen[static_cast<std::size_t>(i)] == i);
  }
}

TEST_CASE("emulated streams: calls return before the work is done, eager ones after") {
  const TestStream stream;
  Gate gate;
  gate.close(stream);
  cudaGetLastError();
  CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  CHECK(cudaGetLastError() == cudaSuccess);  // not ready is no error
  gate.open();
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(cudaStreamQuery(stream) == cudaSuccess);
  const StreamModeScope scope(StreamMode::eager);
  std::atomic<bool> ran = false;
  call(stream, [&ran] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ran = true;
  });
  CHECK(ran);
}

TEST_CASE("emulated streams: two streams run at the same time") {
  const TestStream first, second;
  Gate gate;
  gate.close(first);
  std::atomic<int> place = 0;
  call(first, [&place] { place = 1; });
  call(second, [&place] { place = 2; });
  CHECK(cudaStreamSynchronize(second) == cudaSuccess);
  CHECK(place == 2);
  gate.open();
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(place == 1);
}

TEST_CASE("emulated streams: a stream waits for what an event stood for") {
  const TestStream first, second;
  const TestEvent event(cudaEventDisableTiming);
  CHECK(cudaEventQuery(event) == cudaSuccess);  // never recorded
  CHECK(cudaStreamWaitEvent(second, event) == cudaSuccess);
  Gate gate;
  gate.close(first);
  std::atomic<int> place = 0;
  call(first, [&place] { place = 1; });
  CHECK(cudaEventRecord(event, first) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(second, event) == cudaSuccess);
  std::atomic<int> seen = -1;
  call(second, [&] { seen = place.load(); });
  CHECK(cudaEventQuery(event) == cudaErrorNotReady);
  // Recorded anew it is another point; the wait above is for the old one.
  Gate later;
  later.close(first);
  CHECK(cudaEventRecord(event, first) == cudaSuccess);
  gate.open();
  CHECK(cudaStreamSynchronize(second) == cudaSuccess);
  CHECK(seen == 1);
  CHECK(cudaEventQuery(event) == cudaErrorNotReady);
  later.open();
  CHECK(cudaEventSynchronize(event) == cudaSuccess);
}

TEST_CASE("emulated streams: events measure time") {
  const TestStream stream;
  const TestEvent begin, end, untimed(cudaEventDisableTiming), never;
  CHECK(cudaEventRecord(begin, stream) == cudaSuccess);
  call(stream, [] { std::this_thread::sleep_for(std::chrono::milliseconds(3)); });
  Gate gate;
  gate.close(stream);
  CHECK(cudaEventRecord(end, stream) == cudaSuccess);
  float milliseconds = 0;
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end) == cudaErrorNotReady);
  gate.open();
  CHECK(cudaEventSynchronize(end) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end) == cudaSuccess);
  CHECK(milliseconds >= 3);
  CHECK(cudaEventElapsedTime(&milliseconds, begin, untimed) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventElapsedTime(&milliseconds, begin, never) == cudaErrorInvalidResourceHandle);
}

TEST_CASE("emulated streams: handles that are gone, or of another device") {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, 2) == cudaErrorInvalidValue);
  CHECK(cudaEventCreateWithFlags(&event, 16) == cudaErrorInvalidValue);
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  {
    const OnDevice on(30);
    const TestStream other;
    CHECK(cudaEventRecord(event, other) == cudaErrorInvalidResourceHandle);
    CHECK(failure_detail() == "an event and a stream of different devices");
  }
  CHECK(cudaStreamWaitEvent(stream, event, 7) == cudaErrorInvalidValue);
  CHECK(cudaLaunchHostFunc(stream, nullptr, nullptr) == cudaErrorInvalidValue);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamQuery(stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(event, stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamWaitEvent(stream, event) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventDestroy(event) == cudaSuccess);
  CHECK(cudaEventDestroy(event) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventQuery(event) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventSynchronize(event) == cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamSynchronize(nullptr) == cudaErrorInvalidResourceHandle);
  CHECK(cudaMemsetAsync(nullptr, 0, 0, nullptr) == cudaErrorInvalidResourceHandle);
  CHECK(failure_detail() == "the null stream: there is no implicit default stream");
}

TEST_CASE("emulated streams: a destroyed stream ends its work first") {
  std::atomic<bool> ran = false;
  Gate gate;
  {
    const TestStream stream;
    gate.close(stream);
    call(stream, [&ran] { ran = true; });
  }
  CHECK(!ran);
  gate.open();
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(ran);
}

TEST_CASE("emulated streams: host functions may not call CUDA") {
  const TestStream stream;
  struct Results {
    cudaError_t memory, device, event;
    cudaEvent_t asked;
  };
  const TestEvent event;
  Results results{cudaSuccess, cudaSuccess, cudaSuccess, event};
  const cudaHostFn_t use = [](void* data) {
    auto& to = *static_cast<Results*>(data);
    void* pointer = nullptr;
    to.memory = cudaMalloc(&pointer, 4);
    to.device = cudaSetDevice(0);
    to.event = cudaEventQuery(to.asked);
  };
  CHECK(cudaLaunchHostFunc(stream, use, &results) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(results.memory == cudaErrorNotPermitted);
  CHECK(results.device == cudaErrorNotPermitted);
  CHECK(results.event == cudaErrorNotPermitted);
}

TEST_CASE("emulated streams: after a fault work is dropped, and nobody waits for it") {
  const OnDevice on(31);
  const TestStream stream;
  const TestEvent event(cudaEventDisableTiming);
  Gate gate;
  gate.close(stream);
  std::atomic<bool> ran = false;
  call(stream, [] { throw DeviceFault(cudaErrorLaunchFailure, "kernel k: a lane too many"); });
  call(stream, [&ran] { ran = true; });
  CHECK(cudaEventRecord(event, stream) == cudaSuccess);
  gate.open();
  CHECK(cudaEventSynchronize(event) == cudaErrorLaunchFailure);
  CHECK(failure_detail() == "kernel k: a lane too many");
  CHECK(!ran);
  CHECK(queue_work(stream, {[] {}}) == cudaErrorLaunchFailure);
  revive(31);
  call(stream, [] { throw std::runtime_error("something else"); });
  CHECK(cudaStreamSynchronize(stream) == cudaErrorUnknown);
  CHECK(failure_detail() == "something else");
  revive(31);
}

TEST_CASE("emulated streams: synchronous calls wait for blocking streams alone") {
  cudaStream_t blocking = nullptr;
  REQUIRE(cudaStreamCreate(&blocking) == cudaSuccess);
  const TestStream free;
  const TestMemory memory(4);
  Gate gate;
  gate.close(free);
  REQUIRE(cudaMemsetAsync(memory.as(), 1, 4, blocking) == cudaSuccess);
  CHECK(read_value<std::uint32_t>(memory.as()) == 0x01010101);
  gate.open();
  CHECK(cudaStreamDestroy(blocking) == cudaSuccess);
}

}  // namespace convoy::emulator
