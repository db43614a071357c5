// The step on several workers, those of this process and of others, in any layout: replicas of the
// network, each over one worker or over a row of them. Each worker does its line of a table that
// was proved; gradients are added over the replicas of a stage while backward goes on.
//
//     replica 0   worker 0: stage 0 <-> worker 1: stage 1
//                     |  reducer            |  reducer
//     replica 1   worker 2: stage 0 <-> worker 3: stage 1
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/group.h"
#include "engine/train/stage_worker.h"
#include "engine/train/window_tables.h"
#include "engine/train/worker_threads.h"
#include "kernels/base/context.h"

namespace convoy {

struct PipelineOptions {
  Layout layout;
  std::vector<int> cuts;  ///< places of the network before which stages begin, but the first one
  Shape sample;           ///< of one image: (1, 3, H, W) or (1, features)
  Division division;      ///< how a batch is divided; its rule is that of the workers
  ScheduleOptions schedule;
  BucketLimits buckets;
  int slots = 2;      ///< messages that a link holds at either end
  bool nccl = false;  ///< gradients and batch norms over NCCL
  double comm_timeout = 60;
};

class PipelineRunner : public StepRunner {
 public:
  /// `workers`: one for each local worker of `group`, which outlives this; all networks have the
  /// same layers. Collective. `usage` for a layout that does not fit the group, or cuts that leave
  /// a stage empty.
  PipelineRunner(Group& group, std::vector<WorkerParts> workers, const PipelineOptions& options);
  ~PipelineRunner() override;

  void prepare(const std::vector<std::vector<std::vector<std::int64_t>>>& windows) override;

  StepResult step(const Window& window, BatchFeed& feed) override;
  EvalSums evaluate(const HostBatch& batch) override;
  Outputs predict(const HostBatch& batch) override;
  void settle_statistics() override;
  std::vector<std::string> weights_hashes() override;
  std::vector<LinkReport> links() override;
  ReduceSeconds reduce_seconds() const override;
  WorkersEvent account() override;
  void keep_spans(bool on) override;
  SpansEvent take_spans() override;
  TrainingTensors tensors() override;
  std::vector<NamedArray> gradients() override;
  std::uint64_t tensor_bytes() const override;
  void load(const TrainingTensors& tensors) override;

 private:
  /// work(i) on the thread of each worker of this process, on its device's stream.
  void run_each(const std::function<void(int)>& work);
  void run(const std::function<void(StageWorker&)>& work);
  bool shares_devices() const;
  const ScheduleLine& line_of(const Schedule& schedule, const StageWorker& worker) const;
  enum class Readers { leader, all };
  std::vector<WorkerReport> all_reports(bool reset, Readers readers = Readers::leader);
  void measure_memory(const std::vector<MicroBatchPlan>& plans);
  MicroBatchPlan forward_plan(const HostBatch& batch) const;
  /// Parts that replica's workers give, together at its first one; the others get none.
  std::vector<NamedArray> joined(StageWorker& worker, int replica, std::vector<NamedArray> mine);
  void sort_as_one_device(std::vector<NamedArray>& arrays) const;

  Group& group_;
  const PipelineOptions options_;
  PipelineSetup setup_;
  const std::int64_t width_;  // of an output
  const DType dtype_;
  const std::size_t device_memory_;  // most bytes of each worker's device; 0: no cap
  WindowTables tables_;
  using Shares = std::vector<std::vector<std::int64_t>>;
  std::map<Shares, std::int64_t> windows_;  // steps of each shape since the last account
  std::map<std::int64_t, Shares> kept_;     // of the steps whose spans are kept
  bool keeps_spans_ = false;
  std::vector<std::unique_ptr<Stream>> streams_;  // of workers that share a device; else null
  std::vector<std::unique_ptr<StageWorker>> workers_;
  WorkerThreads threads_;
};

}  // namespace convoy
