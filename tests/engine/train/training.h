// What tests of training share: small jobs on made-up data, and an observer that keeps all events.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/train/trainer.h"

namespace convoy::testing {

/// Keeps events; `after_step` is called with each step's number.
struct Recorder : Observer {
  void on_step(const StepEvent& event) override {
    steps.push_back(event);
    if (after_step) after_step(event.step);
  }
  void on_eval(const EvalEvent& event) override { evals.push_back(event); }
  void on_eval_progress(std::int64_t done, std::int64_t) override {
    if (during_eval) during_eval(done);
  }
  void on_checkpoint(const std::string& folder) override { checkpoints.push_back(folder); }
  void on_note(const std::string& line) override { notes.push_back(line); }
  void on_warning(const std::string& line) override { warnings.push_back(line); }

  std::vector<StepEvent> steps;
  std::vector<EvalEvent> evals;
  std::vector<std::string> checkpoints, notes, warnings;
  std::function<void(std::int64_t)> after_step, during_eval;
};

/// `images` made-up images of 3 classes and 32 pixels for resnet18, or rows for toy and line.
TrainingJob small_job(Settings settings, std::int64_t images);

/// The same for a network of two batch norms that sees 8 pixels: for many steps in double.
TrainingJob tiny_job(Settings settings, std::int64_t images);

/// Trains on as many devices of the type as `replicas` says, one a thread of this process.
TrainingOutcome run_replicas(TrainingJob job, int replicas, Recorder& recorder,
                             const char* device = "cpu");

/// Trains and returns the events; `recorder` keeps them too.
TrainingOutcome run(const TrainingJob& job, Recorder& recorder);

/// What two equal runs share of their events: everything but times.
std::vector<double> figures(const Recorder& recorder);

}  // namespace convoy::testing
