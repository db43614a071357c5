// Events as JSON lines: `run`, `step`, `eval`, `bubble`, `spans`, `end`, to the file of --log and,
// with --json, to stdout. A resumed run keeps the file's lines up to its start, cuts the rest off
// (steps that are computed again, the `end` of the run that was stopped) and goes on after a `run`
// line of its own: its step and eval lines are those of a run that never stopped, but for rates.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/json_lines.h"
#include "cli/line_file.h"
#include "cli/options.h"
#include "engine/train/observer.h"

namespace convoy::cli {

/// Name and version of what the program is made of: ("convoy", "0.1.0"), ("onednn", "3.2.0"), ...
using Versions = std::vector<std::pair<std::string, std::string>>;

/// The lines, without line breaks. `options` are echoed in the run line, what was left open as the
/// run resolved it.
std::string run_line(const Options& options, const RunInfo& info, const Versions& versions);
std::string step_line(const StepEvent& event);
std::string eval_line(const EvalEvent& event);
/// States are named as in kStateNames; shares are of the worker's own time and sum to 1.
std::string bubble_line(const WorkersEvent& event);
/// Of the last step: each span as [state, "OP stage.micro-batch", track, begin, end], seconds from
/// the step's begin.
std::string spans_line(const SpansEvent& event);
std::string end_line(const EndEvent& event);

/// `{"convoy":"0.1.0",...}`.
JsonObject json_of(const Versions& versions);

/// Whether a run that goes on as `info` says keeps this line of the file, given that it kept all
/// lines before: steps and evaluations that are made again are not kept.
bool keep_line(const std::string& line, const RunInfo& info);

class MetricsObserver : public Observer {
 public:
  /// Writes to the file of --log and to stdout, as `options` say.
  MetricsObserver(Options options, Versions versions);

  void on_run(const RunInfo& info) override;
  void on_step(const StepEvent& event) override { write(step_line(event)); }
  void on_eval(const EvalEvent& event) override { write(eval_line(event)); }
  void on_workers(const WorkersEvent& event) override { write(bubble_line(event)); }
  void on_spans(const SpansEvent& event) override;
  void on_end(const EndEvent& event) override { write(end_line(event)); }

 private:
  void write(const std::string& line);

  Options options_;
  Versions versions_;
  std::unique_ptr<LineFile> log_;
  std::unique_ptr<LineFile> out_;
};

}  // namespace convoy::cli
