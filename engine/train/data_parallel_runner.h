// The step on several workers, those of this process and of others: each has a whole network and
// works on its share of a batch; gradients are added over all while backward goes on.
//
//     trainer's thread    begin --- add_batch --- finish
//     each worker's       zero      F B  F B      last losses, wait for the sums, update
//     its reducer                        '--> all-reduce of each bucket, from the last
//                                             micro-batch on
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

  void begin(const Window& window) override;
  void add_batch(const HostBatch& batch) override;
  StepResult finish() override;
  EvalSums evaluate(const HostBatch& batch) override;
  void settle_statistics() override;
  std::vector<std::string> weights_hashes() override;
  ReduceSeconds reduce_seconds() const override;
  TrainingTensors tensors() override;
  std::uint64_t tensor_bytes() const override;
  void load(const TrainingTensors& tensors) override;

 private:
  struct Worker;

  /// What the local workers shall do of `batch`.
  std::vector<BatchPart> parts_of(const HostBatch& batch) const;
  void run(const std::function<void(Worker&)>& work);
  void send_statistics(Worker& worker);

  Group& group_;
  const Division division_;
  std::vector<std::unique_ptr<Worker>> workers_;
  WorkerThreads threads_;
  Window window_;
  std::int64_t batches_added_ = 0;
};

}  // namespace convoy
