#include "engine/train/graph_runner.h"

#include <utility>

#include "engine/nn/layers.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

// Work of the calling thread goes to `stream`: after what the default stream has, and before what
// it gets later.
class SideStream {
 public:
  SideStream(DeviceContext& device, Stream& stream)
      : device_(device), stream_(stream), scope_(stream) {
    stream.wait(device.default_stream().record());
  }
  ~SideStream() {
    try {
      device_.default_stream().wait(stream_.record());
    } catch (const Error&) {  // of the device: its next call tells it
    }
  }
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

 private:
  DeviceContext& device_;
  Stream& stream_;
  StreamScope scope_;
};

// Ends the capture also where an op fails in it: the stream must be of use again.
class Capture {
 public:
  Capture(DeviceContext& device, Stream& stream) : device_(device), stream_(stream) {
    device.begin_capture(stream);
  }
  ~Capture() {
    if (ended_) return;
    try {
      device_.end_capture(stream_);
    } catch (const Error&) {  // the op's error says what was wrong
    }
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  std::unique_ptr<Graph> end() {
    ended_ = true;
    return device_.end_capture(stream_);
  }

 private:
  DeviceContext& device_;
  Stream& stream_;
  bool ended_ = false;
};

}  // namespace

GraphRunner::GraphRunner(std::shared_ptr<Network> network, std::unique_ptr<Optimizer> optimizer,
                         const RunnerOptions& options)
    : LocalRunner(std::move(network), std::move(optimizer), options),
      device_(context(options.device)) {
  CONVOY_CHECK(device_.can_capture(), "--graph: {} records no graphs, expected cuda:K or emu:K",
               to_string(options.device));
  stream_ = device_.make_stream();
}

// Work behind the graph still reads its gradients, whose memory is about to be anybody's.
GraphRunner::~GraphRunner() {
  try {
    device_.default_stream().synchronize();
  } catch (const Error&) {  // told where somebody can hear it
  }
}

StepResult GraphRunner::step(const Window& window, BatchFeed& feed) {
  const WindowParts parts = {window.images, window.shares};
  if (captured_ && parts != parts_) return LocalRunner::step(window, feed);
  // The first window of its kind makes what a graph cannot: layouts of weights, tables, scratch.
  if (std::exchange(parts_, parts) != parts || window.images == 0) {
    return run_eagerly(window, feed);
  }
  begin(window);
  copy_in(window, feed);
  replay();
  std::vector<Tensor> inputs;
  for (const auto& batch : captured_->inputs) {
    inputs.insert(inputs.end(), batch.begin(), batch.end());
  }
  return finish(captured_->losses, inputs);
}

// On the graph's stream, which will find there the memory that it needs.
StepResult GraphRunner::run_eagerly(const Window& window, BatchFeed& feed) {
  const SideStream side(device_, *stream_);
  return LocalRunner::step(window, feed);
}

// Into the same tensors each time; they are made of the first window's.
void GraphRunner::copy_in(const Window& window, BatchFeed& feed) {
  const bool first = !captured_;
  auto made = first ? std::make_unique<Captured>() : std::move(captured_);
  if (first) made->inputs.resize(window.shares.size());
  if (first) made->targets.resize(window.shares.size());
  for (std::size_t i = 0; i < window.shares.size(); ++i) {
    const HostBatch& batch = feed.at(static_cast<std::int64_t>(i));
    const std::vector<BatchRange> ranges = micro_batches_of(batch.images);
    CONVOY_DCHECK(first || ranges.size() == made->inputs[i].size(),
                  "{} micro-batches for a graph of {}", ranges.size(), made->inputs[i].size());
    for (std::size_t k = 0; k < ranges.size(); ++k) {
      const BatchRange& range = ranges[k];
      const Tensor x = head().input(batch, range);
      const Tensor target = head().target(batch, range);
      if (first) {
        made->inputs[i].push_back(x);
        made->targets[i].push_back(target);
      } else {
        made->inputs[i][k].copy_(x);
        made->targets[i][k].copy_(target);
      }
    }
    feed.done(static_cast<std::int64_t>(i));
  }
  captured_ = std::move(made);
}

void GraphRunner::replay() {
  const SideStream side(device_, *stream_);
  if (!captured_->graph) capture();
  captured_->graph->launch();
  ++launches_;
  take_gradients();
  const std::vector<std::int64_t*> counts = counters();
  for (std::size_t i = 0; i < counts.size(); ++i) *counts[i] += captured_->counted[i];
}

// Nothing runs yet, and the counters stay as they were.
void GraphRunner::capture() {
  const std::vector<std::int64_t*> counts = counters();
  for (const std::int64_t* count : counts) captured_->counted.push_back(-*count);
  Capture capture(device_, *stream_);
  for (std::size_t i = 0; i < captured_->inputs.size(); ++i) {
    for (std::size_t k = 0; k < captured_->inputs[i].size(); ++k) {
      captured_->losses.push_back(
          add_micro_batch(captured_->inputs[i][k], captured_->targets[i][k]));
    }
    commit_batch_norms(network());
  }
  for (const auto& [name, parameter] : network().named_parameters()) {
    captured_->gradients.push_back(parameter.grad());
  }
  captured_->graph = capture.end();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    captured_->counted[i] += *counts[i];
    *counts[i] -= captured_->counted[i];
  }
}

// Those of the graph: since then they were dropped, or made anew by a window without it.
void GraphRunner::take_gradients() {
  const NamedTensors parameters = network().named_parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].second.grad() = captured_->gradients[i];
  }
}

std::vector<std::int64_t*> GraphRunner::counters() {
  std::vector<std::int64_t*> counts;
  for (const auto& [name, count] : network().named_counters()) counts.push_back(count);
  return counts;
}

void GraphRunner::load(const TrainingTensors& tensors) {
  LocalRunner::load(tensors);
  captured_.reset();  // the values may have come to lie elsewhere
  parts_ = {};
}

}  // namespace convoy
