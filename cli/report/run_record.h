// What a report shows of one run, as read from the lines that `train` and `bench split` write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/train/observer.h"

namespace convoy::cli {

/// A `step` line.
struct StepPoint {
  std::int64_t step = 0;
  double epoch = 0;
  double loss = 0;
  double lr = 0;
  double images = 0;
  double images_per_s = 0;
  double grad_norm = 0;
};

/// An `eval` line.
struct EvalPoint {
  std::int64_t step = 0;  ///< of the step before it
  double epoch = 0;
  double loss = 0;
  double top1 = 0;
  double top5 = 0;
  double images = 0;
};

/// A line of `bench split --json`. What is absent is NaN, or empty.
struct SweepRow {
  std::string mode;      ///< single, model-parallel, pipeline, data-parallel
  std::string schedule;  ///< of several stages
  std::string cut;
  double split = 0;  ///< images in a micro-batch
  double micro_batches = 0;
  double replicas = 1;
  double stages = 1;
  std::vector<double> seconds;  ///< of each repeat
  double mean_s = 0;
  double std_s = 0;
  double images_per_s = 0;
  double speed_up = 0;             ///< times one device with the whole batch
  double speed_up_same_split = 0;  ///< times one device in such micro-batches
  double ceiling = 0;              ///< of speed_up_same_split, by the simulator
  double share_of_ceiling = 0;
  double bubble = 0;
  double bubble_predicted = 0;

  /// Deviation of images_per_s that std_s stands for.
  double rate_error() const { return mean_s > 0 ? images_per_s * std_s / mean_s : 0; }
  /// The whole batch in one piece: a level that the sweep is held against.
  bool whole() const { return mode != "pipeline" && micro_batches == 1; }
};

/// A `spans` line: one step from its begin on.
struct SpanRecord {
  StepSpans step;
  std::int64_t all_workers = 0;  ///< of which `step` may hold the first ones alone
};

struct RunRecord {
  std::string name;
  /// Of the last `run` line, in its order: flags, devices, versions.
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<StepPoint> steps;
  std::vector<EvalPoint> evals;
  std::optional<WorkersEvent> workers;  ///< the sum of the `bubble` lines of one layout
  std::optional<SpanRecord> spans;
  std::vector<SweepRow> splits;
  std::vector<std::pair<std::string, std::string>> split_facts;  ///< model, cut, ...
  std::vector<std::string> split_verdicts;  ///< what the sweep says to each claim
  std::optional<EndEvent> end;

  /// The text of a setting, empty if it is not there.
  std::string setting(std::string_view key) const;
  bool empty() const { return settings.empty() && steps.empty() && splits.empty(); }
};

/// Adds what one line says; a line of an unknown type adds nothing. False if it is no JSON object.
bool add_line(RunRecord& record, const std::string& line);

/// The lines of a file, or of all *.jsonl files of a folder. A last line that was not finished is
/// passed over. `data` if nothing can be read, for a line that is no JSON object, and where no line
/// is one of a run.
RunRecord read_run(const std::string& path);

}  // namespace convoy::cli
