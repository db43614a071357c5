// Capture of streams into graphs. A graph is a list of closures with edges; work that other streams
// do after an event of the captured stream belongs to it. Replay uses the pointers that were
// captured.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/emulator/runtime_api.h"

namespace convoy::emulator {

struct EmulatedStream;
struct EmulatedEvent;
struct Task;

/// Work of a graph and the nodes that come before it.
struct GraphNode {
  std::function<void()> work;
  std::vector<std::size_t> after;
};

/// A capture that goes on, begun on `origin`.
struct Capture {
  cudaStream_t origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool invalid = false;
  std::vector<GraphNode> nodes;
  std::vector<std::weak_ptr<EmulatedStream>> streams;  // that joined it, origin first
};

/// Of a stream: the capture it takes part in (null: none) and its latest nodes.
struct CaptureMembership {
  std::shared_ptr<Capture> capture;
  std::vector<std::size_t> latest;
};

/// Of an event that was recorded in a capturing stream: where in which capture.
struct CapturePoint {
  std::weak_ptr<Capture> capture;
  std::vector<std::size_t> nodes;
  bool set = false;
};

/// Whether a capture took the work, and what the call must return if not cudaSuccess.
struct CaptureResult {
  cudaError_t error = cudaSuccess;
  bool taken = false;
};

/// Adds `task` to the graph that `stream` captures, if it does.
CaptureResult capture_task(EmulatedStream& stream, const Task& task);

/// Records `event` in the graph that `stream` captures, if it does; else it is an event again that
/// has nothing to do with captures.
CaptureResult capture_record(EmulatedStream& stream, EmulatedEvent& event);

/// Makes `stream` wait for `event` in a capture, where either of them is in one.
CaptureResult capture_wait(EmulatedStream& stream, EmulatedEvent& event);

/// For calls that wait for the stream: an error, which invalidates its capture, if there is one.
cudaError_t refuse_in_capture(EmulatedStream& stream);

/// For calls that wait for or ask about an event: an error if a capture recorded it.
cudaError_t refuse_captured(EmulatedEvent& event);

/// For calls that may wait for streams of their own accord, such as cudaMalloc: an error, which
/// invalidates them, if captures go on that forbid it to the calling thread.
cudaError_t refuse_while_capturing();

}  // namespace convoy::emulator
