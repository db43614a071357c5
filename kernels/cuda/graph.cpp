#include "kernels/cuda/graph.h"

#include "kernels/cuda/check.h"

namespace convoy::CONVOY_GPU {

void begin_capture(GpuStream& stream) {
  stream.gpu().make_current();
  // The stricter modes refuse what the memory pool does: to allocate, and to ask for events.
  check(cudaStreamBeginCapture(stream.handle(), cudaStreamCaptureModeRelaxed));
  stream.gpu().memory.hold(&stream);
}

GpuGraph::GpuGraph(GpuStream& stream) : stream_(stream), scratch_(stream.take_captured_scratch()) {
  stream_.gpu().make_current();
  cudaGraph_t graph = nullptr;
  cudaError_t result = cudaStreamEndCapture(stream_.handle(), &graph);
  if (result == cudaSuccess) {
    result = cudaGraphGetNodes(graph, nullptr, &nodes_);
    if (result == cudaSuccess) result = cudaGraphInstantiate(&exec_, graph, 0);
    cudaGraphDestroy(graph);
  }
  if (result == cudaSuccess) return;
  stream_.gpu().memory.let_go(&stream_);
  check(result);
}

GpuGraph::~GpuGraph() {
  cudaSetDevice(stream_.gpu().name.index);
  cudaStreamSynchronize(stream_.handle());
  cudaGraphExecDestroy(exec_);
  scratch_.clear();
  stream_.gpu().memory.let_go(&stream_);
}

void GpuGraph::launch() {
  stream_.gpu().make_current();
  stream_.begin_span("graph");
  check(cudaGraphLaunch(exec_, stream_.handle()));
  stream_.end_span();
}

}  // namespace convoy::CONVOY_GPU
