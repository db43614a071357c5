// What a run tells the world, one call an event. The program turns events into lines, bars and
// files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/link_test.h"
#include "engine/parallel/pipeline/spans.h"
#include "engine/parallel/pipeline/worker_states.h"

namespace convoy {

/// What is fixed before the first step: the `run` line.
struct RunInfo {
  std::string model;
  std::int64_t parameters = 0;
  std::int64_t classes = 0;
  std::int64_t image_size = 0;
  std::string bn;
  std::vector<std::string> devices;       ///< names, of all workers
  std::vector<std::string> device_texts;  ///< what each is
  std::vector<std::int64_t> threads;      ///< of each worker
  std::vector<std::string> hosts;         ///< of each process
  std::int64_t replicas = 1;
  std::int64_t stages = 1;
  std::int64_t stages_per_worker = 1;
  std::string cut;                ///< first layer of each later stage; empty: one stage
  std::string schedule;           ///< empty: one stage
  std::vector<LinkReport> links;  ///< between stages; empty: one stage
  std::int64_t world = 1;         ///< workers of all processes
  std::string comm;               ///< how they talk to each other; empty: there is one
  /// Whose running statistics of batch norm are the network's: "replica 0", "all replicas".
  std::string running_statistics;
  std::int64_t train_images = 0;
  std::int64_t val_images = 0;
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;
  std::int64_t start_step = 0;
  std::optional<std::int64_t> start_epoch;  ///< in work at the start: its evaluation is to come
  std::vector<std::string> class_names;
};

struct StepEvent {
  std::int64_t step = 0;   ///< counts from 1
  std::int64_t epoch = 0;  ///< counts from 1
  double loss = 0;
  double lr = 0;
  std::int64_t images = 0;  ///< of this step
  double seconds = 0;       ///< of this step, loading included
  double wait_seconds = 0;  ///< of these, waiting for data
  double grad_norm = 0;     ///< before clipping
};

struct EvalEvent {
  std::int64_t epoch = 0;
  double loss = 0;
  double top1 = 0;  ///< fraction
  double top5 = 0;
  std::int64_t images = 0;
};

struct EndEvent {
  std::int64_t steps = 0;  ///< global step reached
  double seconds = 0;      ///< training alone
  std::string weights_hash;
  std::string checkpoint;  ///< newest folder written, empty if none
};

/// Where the workers' time went, over the steps since the last such event or the run's start. Comes
/// after each epoch and before on_end; the sums of `workers` are over `steps` steps.
struct WorkersEvent {
  std::int64_t steps = 0;
  double step_s = 0;                   ///< measured, a step
  double predicted_step_s = 0;         ///< by the simulator; 0: no forecast
  std::vector<WorkerAccount> workers;  ///< all of the job, by rank
};

/// What all workers did in a few steps. Comes once, or again with others in their place.
struct SpansEvent {
  std::vector<StepSpans> steps;
  double clock_error_s = 0;  ///< by which clocks of processes may still differ
};

/// Calls come from the thread that trains, in order.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_run(const RunInfo&) {}
  virtual void on_step(const StepEvent&) {}
  virtual void on_eval(const EvalEvent&) {}
  virtual void on_eval_progress(std::int64_t /*images*/, std::int64_t /*of*/) {}
  virtual void on_workers(const WorkersEvent&) {}
  virtual void on_spans(const SpansEvent&) {}
  virtual void on_checkpoint(const std::string& /*folder*/) {}
  virtual void on_note(const std::string& /*line*/) {}
  virtual void on_warning(const std::string& /*line*/) {}
  virtual void on_end(const EndEvent&) {}
};

}  // namespace convoy
