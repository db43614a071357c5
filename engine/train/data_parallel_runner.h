// The step on several workers, those of this process and of others: each has a whole network and
// works on its share of a batch; gradients are added over all while backward goes on.
//
//     each worker    F B  F B       last losses, wait for the sums, update
//     its reducer         '--> all-reduce of each bucket, from the last micro-batch on
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/group.h"
#include "engine/parallel/reducer.h"
#include "engine/train/local_runner.h"
#include "engine/train/worker_threads.h"

namespace convoy {

/// One replica and what joins it to the others.
struct TrainingReplica {
  std::shared_ptr<Network> network;
  std::unique_ptr<Optimizer> optimizer;
  LocalRunnerOptions options;  ///< device, and what is the same on all
};

class DataParallelRunner : public StepRunner {
 public:
  /// `replicas`: one a local worker of `group`, which outlives this. `division` says how a batch is
  /// divided; its micro-batch rule is that of the replicas' options. Collective.
  DataParallelRunner(Group& group, std::vector<TrainingReplica> replicas, const Division& division,
                     const BucketLimits& buckets = {});
  ~DataParallelRunner() override;

  StepResult step(const Window& window, BatchFeed& feed) override;
  EvalSums evaluate(const HostBatch& batch) override;
  void settle_statistics() override;
  std::vector<std::string> weights_hashes() override;
  ReduceSeconds reduce_seconds() const override;
  TrainingTensors tensors() override;
  std::uint64_t tensor_bytes() const override;
  void load(const TrainingTensors& tensors) override;

 private:
  struct Worker;

  /// What a local worker shall do of `batch`.
  BatchPart part_of(const Worker& worker, const HostBatch& batch) const;
  void add_batch(Worker& worker, const HostBatch& batch, bool last);
  void finish(Worker& worker);
  void run(const std::function<void(Worker&)>& work);
  void send_statistics(Worker& worker);

  Group& group_;
  const Division division_;
  std::vector<std::unique_ptr<Worker>> workers_;
  WorkerThreads threads_;
};

}  // namespace convoy
