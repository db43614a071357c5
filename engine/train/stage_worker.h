// One worker of a pipeline: its stages, its links, its part of the agreements. It does what its
// line of the schedule says.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/group.h"
#include "engine/nn/network.h"
#include "engine/optim/optimizer.h"
#include "engine/parallel/pipeline/stage.h"
#include "engine/parallel/reducer.h"
#include "engine/train/agreement.h"
#include "engine/train/stage_links.h"
#include "engine/train/worker_report.h"

namespace convoy {

/// What all workers of a job have in common.
struct PipelineSetup {
  Layout layout;
  StageMap map;
  bool together = false;  ///< batch norm joins micro-batch k of all replicas
  BucketLimits buckets;
  int slots = 2;                       ///< messages that a link holds at either end
  std::shared_ptr<ParcelLanes> lanes;  ///< of the links inside this process; may be null
  bool nccl = false;                   ///< gradients and batch norms over NCCL
  double timeout = 60;                 ///< seconds in which NCCL's ranks come together
};

/// What one worker brings.
struct WorkerParts {
  std::shared_ptr<Network> network;  ///< the layers of its stages have values
  std::function<std::unique_ptr<Optimizer>(NamedTensors)> make_optimizer;
  RunnerOptions options;
  std::uint64_t seed = 0;  ///< of layers whose values are not there yet
};

/// A window's work as a worker sees it.
struct WindowWork {
  const Window& window;
  const MicroBatchPlan& plan;
  const ScheduleLine& line;
  BatchFeed& feed;
};

/// Forwards alone, of one batch.
struct ForwardWork {
  const HostBatch& batch;
  const MicroBatchPlan& plan;
  const ScheduleLine& line;  ///< RA, F and SA
};

class StageWorker {
 public:
  /// `local`: its number among those of its process. Collective; `group` and `setup` outlive it.
  StageWorker(Group& group, int local, const PipelineSetup& setup, WorkerParts parts);
  ~StageWorker();

  int rank() const { return rank_; }
  int replica() const { return replica_; }

  // Collective, all on the worker's thread.

  StepResult step(const WindowWork& work);
  EvalSums evaluate(const ForwardWork& work);
  /// Outputs of its replica's images where it has the last stage, else none.
  std::vector<double> predict(const ForwardWork& work);
  /// Replica 0's running statistics to all replicas.
  void send_statistics();

  // Not collective.

  /// Measures what its stages need of the device for micro-batches of at most `images` images;
  /// `splits`: some instruction has weights alone. report() tells it.
  void measure_memory(std::int64_t images, bool splits);
  std::vector<NamedArray> state();
  std::vector<NamedArray> optimizer_state() const;
  std::vector<NamedArray> gradients() const;
  std::int64_t optimizer_steps() const;
  std::size_t states_per_parameter() const;
  void load(const TrainingTensors& tensors);
  ReduceTimes reduce_times() const;
  const std::vector<LinkReport>& links() const { return links_.reports(); }
  /// Its times since the last reset; times of phases stay.
  WorkerReport report() const;
  void reset_times();
  /// Keeps the spans of the steps that follow.
  void keep_spans(bool on) { clock_.keep_spans(on); }
  /// A step whose spans were kept, by this worker's clock.
  struct KeptStep {
    std::int64_t step = 0;
    double begin = 0;
    double end = 0;
    std::vector<StateSpan> spans;
  };
  std::vector<KeptStep> take_steps() { return std::exchange(kept_, {}); }
  HostCommunicator& control() { return *control_; }

 private:
  /// A stage with what training adds to it.
  struct Held;

  /// Told each micro-batch's inputs and outputs of the last stage.
  using See = std::function<void(int k, const std::vector<Tensor>& inputs, const Tensor& output)>;

  bool is_last_stage(int stage) const;
  Held& held(int stage);
  bool is_here(int stage) const;
  /// Outputs of a forward to the next stage, here or elsewhere.
  void pass_on(Held& own, int k, std::vector<Tensor> outputs);
  static bool all_finite(const std::vector<Tensor>& tensors);

  void begin(const WindowWork& work);
  void run(const WindowWork& work, std::size_t place);
  void forward(const WindowWork& work, const Instruction& at);
  void wait_for_batch(const WindowWork& work, const Instruction& at);
  std::vector<Tensor> compute_forward(const WindowWork& work, const Instruction& at);
  std::vector<Tensor> inputs_of(const WindowWork& work, const Instruction& at);
  Stage::Finish loss_of(const WindowWork& work, int k) const;
  void check_forward(Held& held, int k, const std::vector<Tensor>& outputs);
  void backward(const WindowWork& work, const Instruction& at, bool whole);
  void backward_weights(const WindowWork& work, const Instruction& at);
  void arm_if_last(const WindowWork& work, const Instruction& at);
  void begin_reduction(const WindowWork& work, const Instruction& at);
  void finish(const WindowWork& work);
  void settle_layouts(const WindowWork& work);
  void finish_batches(const WindowWork& work, std::int64_t through);
  BatchRange images_of(const HostBatch& batch, const MicroBatch& micro_batch) const;
  BatchRange labels_of(const HostBatch& batch, const MicroBatch& micro_batch) const;
  void infer(const ForwardWork& work, const See& see);
  void infer_stage(const ForwardWork& work, Held& own, int k, const See& see);
  void synchronize() const;
  void end_step(double begin);

  const PipelineSetup& setup_;
  HostCommunicator& group_;
  ProgressBoard& board_;
  const int rank_;
  const int replica_;
  const RunnerOptions options_;
  const LossHead head_;
  std::unique_ptr<HostCommunicator> control_;
  std::unique_ptr<HostCommunicator> edges_;     // of the links: other runners may use the group too
  std::unique_ptr<HostCommunicator> replicas_;  // the workers of this position
  std::unique_ptr<Communicator> nccl_;          // the same ones; may be null
  std::vector<std::unique_ptr<Held>> held_;
  StageLinks links_;
  Agreement agreement_;
  StateClock clock_;
  bool has_stepped_ = false;
  Findings findings_;
  StepResult result_;
  std::int64_t step_ = 0;
  std::int64_t batches_done_ = 0;
  int steps_left_ = 0;         // ST of the line that were not met yet
  StateSeconds seconds_ = {};  // since the last reset
  std::int64_t steps_ = 0;     // likewise
  std::int64_t instructions_ = 0;
  ReduceTimes reduced_;  // up to the last reset
  std::vector<KeptStep> kept_;
};

}  // namespace convoy
