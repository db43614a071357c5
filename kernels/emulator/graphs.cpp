#include "kernels/emulator/graphs.h"

#include <algorithm>

#include "kernels/emulator/handle_table.h"
#include "kernels/emulator/streams.h"

namespace convoy::emulator {

struct EmulatedGraph {
  std::vector<GraphNode> nodes;
};

/// Replays a copy of a graph's nodes.
struct EmulatedGraphExec {
  std::vector<GraphNode> nodes;
};

namespace {

// All captures of the process are few and short: one lock for all of them.
struct Captures {
  std::mutex mutex;
  std::vector<std::weak_ptr<Capture>> active;
};

Captures& captures() {
  static auto* const all = new Captures;
  return *all;
}

void add_nodes(std::vector<std::size_t>& to, const std::vector<std::size_t>& nodes) {
  for (std::size_t node : nodes) {
    if (std::find(to.begin(), to.end(), node) == to.end()) to.push_back(node);
  }
}

CaptureResult refused(Capture& capture, cudaError_t error) {
  capture.invalid = true;
  return {error, false};
}

// Nodes that come before one of `last`, and these: edges point backwards, so one sweep finds all.
std::vector<bool> reach_back(const Capture& capture, const std::vector<std::size_t>& last) {
  std::vector<bool> reached(capture.nodes.size(), false);
  for (std::size_t node : last) reached[node] = true;
  for (std::size_t i = capture.nodes.size(); i-- > 0;) {
    if (!reached[i]) continue;
    for (std::size_t before : capture.nodes[i].after) reached[before] = true;
  }
  return reached;
}

// Whether all that other streams do in the capture comes before its end.
bool joined(const Capture& capture, const std::vector<std::size_t>& last) {
  const std::vector<bool> reached = reach_back(capture, last);
  for (const auto& each : capture.streams) {
    const auto stream = each.lock();
    if (!stream) continue;
    for (std::size_t node : stream->capture.latest) {
      if (!reached[node]) return false;
    }
  }
  return true;
}

void leave(const Capture& capture) {
  for (const auto& each : capture.streams) {
    if (const auto stream = each.lock()) stream->capture = {};
  }
}

bool forbids_here(const Capture& capture) {
  if (capture.mode == cudaStreamCaptureModeGlobal) return true;
  return capture.mode == cudaStreamCaptureModeThreadLocal &&
         capture.thread == std::this_thread::get_id();
}

cudaError_t begin(const std::shared_ptr<EmulatedStream>& stream, cudaStreamCaptureMode mode) {
  std::lock_guard lock(captures().mutex);
  if (stream->capture.capture) return cudaErrorIllegalState;
  auto capture = std::make_shared<Capture>();
  capture->origin = stream.get();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->streams.push_back(stream);
  stream->capture = {capture, {}};
  std::erase_if(captures().active, [](const auto& each) { return each.expired(); });
  captures().active.push_back(capture);
  return cudaSuccess;
}

cudaError_t end(EmulatedStream& stream, cudaGraph_t* graph) {
  std::lock_guard lock(captures().mutex);
  const std::shared_ptr<Capture> capture = stream.capture.capture;
  if (!capture) return cudaErrorIllegalState;
  if (capture->origin != &stream) {
    capture->invalid = true;
    return cudaErrorStreamCaptureUnmatched;
  }
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id()) {
    return cudaErrorStreamCaptureWrongThread;
  }
  const bool whole = joined(*capture, stream.capture.latest);
  leave(*capture);
  if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (!whole) return cudaErrorStreamCaptureUnjoined;
  *graph = handles<EmulatedGraph>().add(
      std::make_shared<EmulatedGraph>(EmulatedGraph{std::move(capture->nodes)}));
  return cudaSuccess;
}

}  // namespace

CaptureResult capture_task(EmulatedStream& stream, const Task& task) {
  std::lock_guard lock(captures().mutex);
  CaptureMembership& member = stream.capture;
  if (!member.capture) return {};
  if (member.capture->invalid) return {cudaErrorStreamCaptureInvalidated, false};
  member.capture->nodes.push_back({task.work, member.latest});
  member.latest = {member.capture->nodes.size() - 1};
  return {cudaSuccess, true};
}

CaptureResult capture_record(EmulatedStream& stream, EmulatedEvent& event) {
  std::lock_guard lock(captures().mutex);
  CaptureMembership& member = stream.capture;
  if (!member.capture) {
    event.captured = {};
    return {};
  }
  if (member.capture->invalid) return {cudaErrorStreamCaptureInvalidated, false};
  event.captured = {member.capture, member.latest, true};
  return {cudaSuccess, true};
}

CaptureResult capture_wait(EmulatedStream& stream, EmulatedEvent& event) {
  std::lock_guard lock(captures().mutex);
  CaptureMembership& member = stream.capture;
  if (member.capture && member.capture->invalid) return {cudaErrorStreamCaptureInvalidated, false};
  if (!event.captured.set) {
    if (!member.capture) return {};
    // An event that was never recorded is complete, here too.
    std::lock_guard event_lock(event.mutex);
    return event.point ? refused(*member.capture, cudaErrorStreamCaptureIsolation)
                       : CaptureResult{cudaSuccess, true};
  }
  const std::shared_ptr<Capture> source = event.captured.capture.lock();
  const bool active = source && !source->invalid;
  if (!active) return {cudaErrorCapturedEvent, false};
  if (member.capture && member.capture != source) {
    source->invalid = true;
    return refused(*member.capture, cudaErrorStreamCaptureMerge);
  }
  if (!member.capture) {
    member = {source, {}};
    source->streams.push_back(stream.weak_from_this());
  }
  add_nodes(member.latest, event.captured.nodes);
  return {cudaSuccess, true};
}

cudaError_t refuse_in_capture(EmulatedStream& stream) {
  std::lock_guard lock(captures().mutex);
  if (!stream.capture.capture) return cudaSuccess;
  stream.capture.capture->invalid = true;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t refuse_captured(EmulatedEvent& event) {
  std::lock_guard lock(captures().mutex);
  if (!event.captured.set) return cudaSuccess;
  if (const auto capture = event.captured.capture.lock()) capture->invalid = true;
  return cudaErrorCapturedEvent;
}

cudaError_t refuse_while_capturing() {
  std::lock_guard lock(captures().mutex);
  bool forbidden = false;
  for (const auto& each : captures().active) {
    const auto capture = each.lock();
    if (!capture || !forbids_here(*capture)) continue;
    capture->invalid = true;
    forbidden = true;
  }
  return forbidden ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (const cudaError_t refused = refusal(); refused != cudaSuccess) return note(refused);
  const auto on = handles<EmulatedStream>().find(stream);
  return note(on ? begin(on, mode) : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (!graph) return note(cudaErrorInvalidValue);
  *graph = nullptr;
  const auto on = handles<EmulatedStream>().find(stream);
  return note(on ? end(*on, graph) : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  if (!status) return note(cudaErrorInvalidValue);
  const auto on = handles<EmulatedStream>().find(stream);
  if (!on) return note(cudaErrorInvalidResourceHandle);
  std::lock_guard lock(captures().mutex);
  *status = cudaStreamCaptureStatusNone;
  if (const auto& capture = on->capture.capture) {
    *status = capture->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
  }
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  if (!exec || flags != 0) return note(cudaErrorInvalidValue);
  if (const cudaError_t refused = refusal(); refused != cudaSuccess) return note(refused);
  const auto from = handles<EmulatedGraph>().find(graph);
  if (!from) return note(cudaErrorInvalidValue);
  *exec = handles<EmulatedGraphExec>().add(
      std::make_shared<EmulatedGraphExec>(EmulatedGraphExec{from->nodes}));
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  const auto graph = handles<EmulatedGraphExec>().find(exec);
  const auto on = handles<EmulatedStream>().find(stream);
  if (!graph) return note(cudaErrorInvalidValue);
  if (!on) return note(cudaErrorInvalidResourceHandle);
  if (const cudaError_t refused = refuse_in_capture(*on); refused != cudaSuccess) {
    return note(refused);
  }
  // Nodes were added after those that they wait for, so their order is one that the edges allow.
  return note(queue_work(stream, {[graph] {
                           for (const GraphNode& node : graph->nodes) node.work();
                         }}));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const bool found = handles<EmulatedGraph>().remove(graph) != nullptr;
  return note(found ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  const bool found = handles<EmulatedGraphExec>().remove(exec) != nullptr;
  return note(found ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, void* nodes, std::size_t* count) {
  const auto found = handles<EmulatedGraph>().find(graph);
  if (!found || nodes || !count) return note(cudaErrorInvalidValue);
  *count = found->nodes.size();
  return cudaSuccess;
}

}  // namespace convoy::emulator
