// Captured work of a GPU stream.
#pragma once

#include <memory>
#include <vector>

#include "kernels/base/graph.h"
#include "kernels/cuda/stream.h"

namespace convoy::CONVOY_GPU {

/// An executable CUDA graph with the scratch memory that its kernels use.
class GpuGraph final : public Graph {
 public:
  /// Ends the capture of `stream`; throws if something in it was not allowed.
  explicit GpuGraph(GpuStream& stream);
  ~GpuGraph() override;
  GpuGraph(const GpuGraph&) = delete;
  GpuGraph& operator=(const GpuGraph&) = delete;

  void launch() override;
  std::size_t nodes() const override { return nodes_; }

 private:
  GpuStream& stream_;
  std::vector<std::shared_ptr<MemoryPool::Block>> scratch_;
  cudaGraphExec_t exec_ = nullptr;
  std::size_t nodes_ = 0;
};

/// Begins to capture `stream`. Other streams and the allocation of memory go on as ever.
void begin_capture(GpuStream& stream);

}  // namespace convoy::CONVOY_GPU
