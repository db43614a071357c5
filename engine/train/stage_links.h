// The links of one worker to those that hold the stages before and after its own.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "comm/link_test.h"
#include "engine/parallel/pipeline/tensor_link.h"
#include "engine/parallel/pipeline/worker_states.h"
#include "engine/train/layout.h"
#include "engine/train/micro_batch_plan.h"
#include "engine/train/stage_map.h"

namespace convoy {

struct StageLinkOptions {
  Layout layout;
  Device device;
  DType dtype = DType::f32;
  int slots = 2;  ///< messages that a channel holds at either end
  /// Between workers of this process; null: values go with the messages.
  std::shared_ptr<ParcelLanes> lanes = nullptr;
};

/// Used by the thread of its worker. Collective to make: links are tested before any work.
class StageLinks {
 public:
  /// `group`: all workers; it and `map` outlive this.
  StageLinks(HostCommunicator& group, const StageMap& map, const StageLinkOptions& options);

  /// Sends what `transfer` (SA or SG) says of a micro-batch: `tensors` are the crossing ones in
  /// order, undefined where nothing flows; none for a micro-batch that is passed over. Notes the
  /// wait for a slot on `clock`.
  void send(const Instruction& transfer, const MicroBatch& micro_batch,
            const std::vector<Tensor>& tensors, StateClock& clock);
  /// The other end (RA or RG). `runs`: whether tensors come.
  std::vector<Tensor> receive(const Instruction& transfer, const MicroBatch& micro_batch, bool runs,
                              StateClock& clock);
  /// Returns when everything has left.
  void flush();

  /// The links into this worker, as the self-test has found them.
  const std::vector<LinkReport>& reports() const { return reports_; }

 private:
  struct Edge {
    std::unique_ptr<TensorSender> sender;
    std::unique_ptr<TensorReceiver> receiver;
  };
  void open(int stage, int neighbour);
  LinkOptions options_to(int peer) const;
  std::shared_ptr<ParcelLane> lane(int from, int to, int tag) const;
  const std::vector<CrossingTensor>& tensors_of(const Instruction& transfer) const;

  HostCommunicator& group_;
  const StageMap& map_;
  const StageLinkOptions options_;
  const int replica_;
  std::vector<LinkReport> reports_;
  std::map<int, Edge> before_;  // of each stage here: to the stage before
  std::map<int, Edge> after_;
};

}  // namespace convoy
