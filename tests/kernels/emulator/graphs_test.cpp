// Graphs of the emulated runtime: what a capture records, what it refuses.
#include "kernels/emulator/graphs.h"

#include <thread>
#include <vector>

#include "kernels/emulator/streams.h"
#include "tests/kernels/emulator/runtime_support.h"

namespace convoy::emulator {
namespace {

constexpr auto kGlobal = cudaStreamCaptureModeGlobal;
constexpr auto kThread = cudaStreamCaptureModeThreadLocal;
constexpr auto kRelaxed = cudaStreamCaptureModeRelaxed;

void call(cudaStream_t stream, std::function<void()> work) {
  const cudaError_t result = queue_work(stream, {std::move(work)});
  REQUIRE(result == cudaSuccess);
}

void begin(cudaStream_t stream, cudaStreamCaptureMode mode = kThread) {
  REQUIRE(cudaStreamBeginCapture(stream, mode) == cudaSuccess);
}

// Ends the capture, which must fail so.
void check_end(cudaStream_t stream, cudaError_t error) {
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == error);
  CHECK(graph == nullptr);
}

// A graph of what was captured, that can be launched.
class Captured {
 public:
  explicit Captured(cudaStream_t stream) {
    REQUIRE(cudaStreamEndCapture(stream, &graph_) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&exec_, graph_) == cudaSuccess);
  }
  ~Captured() {
    cudaGraphDestroy(graph_);
    cudaGraphExecDestroy(exec_);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  void launch(cudaStream_t stream) const {
    REQUIRE(cudaGraphLaunch(exec_, stream) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  }
  std::size_t nodes() const {
    std::size_t count = 0;
    REQUIRE(cudaGraphGetNodes(graph_, nullptr, &count) == cudaSuccess);
    return count;
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace

TEST_CASE("emulated graphs: captured work runs when it is launched, as often as it is") {
  const TestStream stream;
  const TestMemory memory(8);
  REQUIRE(cudaMemset(memory.as(), 0, 8) == cudaSuccess);
  int runs = 0;
  begin(stream);
  call(stream, [&runs] { ++runs; });
  REQUIRE(cudaMemsetAsync(memory.as(), 5, 4, stream) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(memory.as<char>() + 4, memory.as(), 4, cudaMemcpyDeviceToDevice,
                          stream) == cudaSuccess);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CHECK(cudaStreamIsCapturing(stream, &status) == cudaSuccess);
  CHECK(status == cudaStreamCaptureStatusActive);
  const Captured graph(stream);
  CHECK(graph.nodes() == 3);
  CHECK(runs == 0);
  CHECK(read_value<std::uint32_t>(memory.as<char>() + 4) == 0);
  for (int i = 1; i <= 3; ++i) {
    graph.launch(stream);
    CHECK(runs == i);
  }
  CHECK(read_value<std::uint32_t>(memory.as<char>() + 4) == 0x05050505);
}

TEST_CASE("emulated graphs: work that other streams do between two events belongs to it") {
  const TestStream first, second;
  const TestEvent fork(cudaEventDisableTiming), join(cudaEventDisableTiming);
  std::vector<int> order;
  begin(first);
  call(first, [&order] { order.push_back(1); });
  REQUIRE(cudaEventRecord(fork, first) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(second, fork) == cudaSuccess);
  call(second, [&order] { order.push_back(2); });
  REQUIRE(cudaEventRecord(join, second) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(first, join) == cudaSuccess);
  call(first, [&order] { order.push_back(3); });
  const Captured graph(first);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  CHECK(cudaStreamIsCapturing(second, &status) == cudaSuccess);
  CHECK(status == cudaStreamCaptureStatusNone);
  graph.launch(second);
  CHECK(order == std::vector<int>{1, 2, 3});
  // An event of a capture that has ended can be recorded again.
  CHECK(cudaStreamWaitEvent(first, fork) == cudaErrorCapturedEvent);
  CHECK(cudaEventRecord(fork, first) == cudaSuccess);
  CHECK(cudaEventSynchronize(fork) == cudaSuccess);
}

TEST_CASE("emulated graphs: a side stream that never came back fails the end") {
  const TestStream first, second;
  const TestEvent fork(cudaEventDisableTiming);
  begin(first);
  REQUIRE(cudaEventRecord(fork, first) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(second, fork) == cudaSuccess);
  call(second, [] {});
  check_end(second, cudaErrorStreamCaptureUnmatched);
  check_end(first, cudaErrorStreamCaptureInvalidated);
  begin(first);
  REQUIRE(cudaEventRecord(fork, first) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(second, fork) == cudaSuccess);
  call(second, [] {});
  check_end(first, cudaErrorStreamCaptureUnjoined);
  check_end(first, cudaErrorIllegalState);
}

TEST_CASE("emulated graphs: a capture cannot wait for work outside of it") {
  const TestStream first, second;
  const TestEvent outside(cudaEventDisableTiming), other(cudaEventDisableTiming);
  REQUIRE(cudaEventRecord(outside, second) == cudaSuccess);
  begin(first);
  CHECK(cudaStreamBeginCapture(first, kThread) == cudaErrorIllegalState);
  CHECK(cudaStreamWaitEvent(first, outside) == cudaErrorStreamCaptureIsolation);
  CHECK(queue_work(first, {[] {}}) == cudaErrorStreamCaptureInvalidated);
  CHECK(cudaEventRecord(outside, first) == cudaErrorStreamCaptureInvalidated);
  check_end(first, cudaErrorStreamCaptureInvalidated);

  begin(first);
  begin(second);
  REQUIRE(cudaEventRecord(other, second) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(first, other) == cudaErrorStreamCaptureMerge);
  check_end(first, cudaErrorStreamCaptureInvalidated);
  check_end(second, cudaErrorStreamCaptureInvalidated);
}

TEST_CASE("emulated graphs: calls that wait invalidate a capture") {
  const TestStream stream;
  const TestEvent event(cudaEventDisableTiming), other(cudaEventDisableTiming);
  auto refuses = [&](cudaStreamCaptureMode mode, cudaError_t error,
                     const std::function<cudaError_t()>& use) {
    begin(stream, mode);
    CHECK(cudaEventRecord(event, stream) == cudaSuccess);
    CHECK(use() == error);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    CHECK(cudaStreamIsCapturing(stream, &status) == cudaSuccess);
    CHECK(status == cudaStreamCaptureStatusInvalidated);
    check_end(stream, cudaErrorStreamCaptureInvalidated);
  };
  void* pointer = nullptr;
  int word = 0;
  const TestMemory memory(4);
  const cudaError_t unsupported = cudaErrorStreamCaptureUnsupported;
  refuses(kThread, unsupported, [&] { return cudaStreamSynchronize(stream); });
  refuses(kThread, unsupported, [&] { return cudaStreamQuery(stream); });
  refuses(kThread, unsupported, [&] { return cudaStreamDestroy(stream); });
  refuses(kRelaxed, cudaErrorCapturedEvent, [&] { return cudaEventQuery(event); });
  refuses(kRelaxed, cudaErrorCapturedEvent, [&] { return cudaEventSynchronize(event); });
  begin(stream);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&exec, graph) == cudaSuccess);
  refuses(kThread, unsupported, [&] { return cudaGraphLaunch(exec, stream); });
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  for (cudaStreamCaptureMode mode : {kGlobal, kThread}) {
    refuses(mode, unsupported, [&] { return cudaEventQuery(other); });
    refuses(mode, unsupported, [&] { return cudaMalloc(&pointer, 4); });
    refuses(mode, unsupported, [&] { return cudaFree(memory.as()); });
    refuses(mode, unsupported, [&] { return cudaMallocHost(&pointer, 4); });
    refuses(mode, unsupported, [&] { return cudaDeviceSynchronize(); });
    refuses(mode, unsupported, [&] { return cudaMemset(memory.as(), 0, 4); });
    refuses(mode, unsupported,
            [&] { return cudaMemcpy(&word, memory.as(), 4, cudaMemcpyDeviceToHost); });
  }
}

TEST_CASE("emulated graphs: modes say whose calls a capture minds") {
  const TestStream stream;
  auto allocate_elsewhere = [] {
    cudaError_t result = cudaSuccess;
    std::thread([&result] {
      void* pointer = nullptr;
      result = cudaMalloc(&pointer, 4);
      cudaFree(pointer);
    }).join();
    return result;
  };
  begin(stream, kThread);
  CHECK(allocate_elsewhere() == cudaSuccess);
  cudaGraph_t graph = nullptr;
  cudaError_t ended = cudaSuccess;
  std::thread([&] { ended = cudaStreamEndCapture(stream, &graph); }).join();
  CHECK(ended == cudaErrorStreamCaptureWrongThread);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);

  begin(stream, kGlobal);
  CHECK(allocate_elsewhere() == cudaErrorStreamCaptureUnsupported);
  check_end(stream, cudaErrorStreamCaptureInvalidated);

  begin(stream, kRelaxed);
  const TestMemory memory(4);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}

TEST_CASE("emulated graphs: handles and arguments that are none") {
  const TestStream stream;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  void* pointer = nullptr;
  std::size_t count = 0;
  CHECK(cudaStreamBeginCapture(nullptr, kThread) == cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamEndCapture(nullptr, &graph) == cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamEndCapture(stream, nullptr) == cudaErrorInvalidValue);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorIllegalState);
  CHECK(cudaStreamIsCapturing(stream, nullptr) == cudaErrorInvalidValue);
  CHECK(cudaGraphInstantiate(&exec, nullptr) == cudaErrorInvalidValue);
  CHECK(cudaGraphInstantiate(nullptr, graph) == cudaErrorInvalidValue);
  CHECK(cudaGraphLaunch(nullptr, stream) == cudaErrorInvalidValue);
  CHECK(cudaGraphDestroy(nullptr) == cudaErrorInvalidValue);
  CHECK(cudaGraphExecDestroy(nullptr) == cudaErrorInvalidValue);
  CHECK(cudaGraphGetNodes(nullptr, nullptr, &count) == cudaErrorInvalidValue);
  begin(stream);
  CHECK(cudaMallocAsync(&pointer, 4, stream) == cudaErrorNotSupported);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  CHECK(cudaGraphGetNodes(graph, nullptr, &count) == cudaSuccess);
  CHECK(count == 0);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}

}  // namespace convoy::emulator
