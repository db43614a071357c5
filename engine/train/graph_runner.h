// The step on one GPU as a graph: forward, loss and backward of a window are recorded once and
// launched with one call from then on. The update, whose learning rate changes, stays outside.
//
//     default stream   copy in batch \                    / read losses, clip, update
//     own stream                      launch the graph --
#pragma once

#include <memory>
#include <vector>

#include "engine/train/local_runner.h"
#include "kernels/base/context.h"
#include "kernels/base/graph.h"

namespace convoy {

/// A LocalRunner, bit for bit. The second of two windows in a row that are divided alike is
/// recorded; windows divided in another way run as ever, and the graph waits for its next one.
class GraphRunner final : public LocalRunner {
 public:
  /// As LocalRunner's. `usage` for a device without graphs.
  GraphRunner(std::shared_ptr<Network> network, std::unique_ptr<Optimizer> optimizer,
              const RunnerOptions& options);
  ~GraphRunner() override;

  StepResult step(const Window& window, BatchFeed& feed) override;
  void load(const TrainingTensors& tensors) override;

  /// Steps that a graph has run.
  std::int64_t launches() const { return launches_; }

 private:
  // How a window is divided: all of it that kernels were told as a number.
  struct WindowParts {
    std::int64_t images = 0;
    std::vector<std::vector<std::int64_t>> shares;
    bool operator==(const WindowParts&) const = default;
  };
  // What the graph reads and writes. Its memory lives as long as it does.
  struct Captured {
    std::vector<std::vector<Tensor>> inputs, targets;  // [batch][micro-batch]
    std::vector<Tensor> losses;
    std::vector<Tensor> gradients;      // of the parameters, in their order
    std::vector<std::int64_t> counted;  // what one step adds to the network's counters
    std::unique_ptr<Graph> graph;
  };

  StepResult run_eagerly(const Window& window, BatchFeed& feed);
  void copy_in(const Window& window, BatchFeed& feed);
  void capture();
  void replay();
  void take_gradients();
  std::vector<std::int64_t*> counters();

  DeviceContext& device_;
  std::unique_ptr<Stream> stream_;
  WindowParts parts_;  // of the graph; without one, of the last window
  std::unique_ptr<Captured> captured_;
  std::int64_t launches_ = 0;
};

}  // namespace convoy
