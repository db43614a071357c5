// A stage in its worker's hands: the computation with what training adds to it.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "engine/train/stage_worker.h"
#include "kernels/base/error.h"

namespace convoy {

/// Tensors that lie ready for an instruction, by micro-batch.
class WaitingTensors {
 public:
  void put(int k, std::vector<Tensor> tensors) { tensors_[k] = std::move(tensors); }
  /// Those of micro-batch `k`, once.
  std::vector<Tensor> take(int k) {
    const auto found = tensors_.find(k);
    CONVOY_DCHECK(found != tensors_.end(), "stage: nothing is here for micro-batch {}", k);
    std::vector<Tensor> tensors = std::move(found->second);
    tensors_.erase(found);
    return tensors;
  }

 private:
  std::map<int, std::vector<Tensor>> tensors_;
};

struct StageWorker::Held {
  Held(int stage, const std::shared_ptr<NetworkSlice>& slice, WorkerParts& parts)
      : number(stage), computation(slice, parts.options.recompute) {
    slice->materialize(parts.options.device, parameter_type(parts.options.dtype), parts.seed);
    slice->to(parameter_type(parts.options.dtype));
    slice->to(parts.options.device);
    const NamedTensors parameters = slice->named_parameters();
    if (!parameters.empty()) optimizer = parts.make_optimizer(parameters);
  }

  NetworkSlice& slice() { return computation.slice(); }

  int number;
  Stage computation;
  std::unique_ptr<Optimizer> optimizer;  // none without parameters
  std::unique_ptr<Communicator> statistics;
  std::unique_ptr<Reducer> reducer;  // with several replicas
  bool has_layouts = false;          // the weights, since a first forward
  PhaseSamples samples;
  StageMemory memory;  // once measured
  // What has come for F and I, and what they have made for the neighbours.
  WaitingTensors activations, gradients;
  WaitingTensors made_activations, made_gradients;
};

}  // namespace convoy
