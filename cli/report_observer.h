// --report: the run as an HTML file once it has ended, or was asked to stop.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/metrics_observer.h"
#include "cli/report/run_record.h"

namespace convoy::cli {

/// Writes the report of `runs` to `path` and, where there is a split sweep, its drawing beside it
/// as .svg. The paths written.
std::vector<std::string> write_report(const std::vector<RunRecord>& runs, const std::string& path);

class ReportObserver : public Observer {
 public:
  ReportObserver(Options options, Versions versions);

  void on_run(const RunInfo& info) override;
  void on_step(const StepEvent& event) override;
  void on_eval(const EvalEvent& event) override;
  void on_workers(const WorkersEvent& event) override;
  void on_spans(const SpansEvent& event) override;
  void on_end(const EndEvent& event) override;

  /// Of the lines of --log, which may be of a run that went on, else of what was heard.
  void write() const;

 private:
  Options options_;
  Versions versions_;
  RunRecord record_;
};

}  // namespace convoy::cli
