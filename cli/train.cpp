// `train`: a network, its data, observers, and the exit code.
#include <memory>
#include <optional>

#include "cli/check_settings.h"
#include "cli/commands.h"
#include "cli/guarded_observer.h"
#include "cli/job_group.h"
#include "cli/metrics_observer.h"
#include "cli/plan_setup.h"
#include "cli/progress_observer.h"
#include "cli/report_observer.h"
#include "cli/run_setup.h"
#include "cli/signals.h"
#include "cli/trace_file.h"
#include "cli/whole_file.h"
#include "engine/train/ranks.h"
#include "engine/train/setup.h"
#include "engine/train/trainer.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

void tell_before(const Options& options, const Ranks& ranks, Observer& shown) {
  for (const std::string& text : all_device_warnings(options.settings, ranks))
    shown.on_warning(text);
  for (const auto& notes : {options.notes, idle_notes(options, ranks.layout())}) {
    for (const std::string& note : notes) shown.on_note(note);
  }
}

std::string stopped_text(const StopOnSignal& stop, const TrainingOutcome& outcome, bool saves) {
  const std::string signal = stop.signal_name();
  return fmt::format("stopped by {} at step {}; {}", signal.empty() ? "another rank" : signal,
                     outcome.end.steps,
                     saves ? "go on with --resume" : "nothing is saved without --checkpoint");
}

/// What the leading process writes to files.
struct Writers {
  explicit Writers(const Options& options) : metrics(options, versions()) {
    observers = {&metrics};
    const Settings& settings = options.settings;
    if (!settings.trace.empty()) {
      prepare_file("--trace", settings.trace);
      observers.push_back(&trace.emplace(settings.trace));
    }
    if (!settings.report.empty()) observers.push_back(&report.emplace(options, versions()));
  }

  MetricsObserver metrics;
  std::optional<TraceObserver> trace;
  std::optional<ReportObserver> report;
  std::vector<Observer*> observers;
};

// Every process runs this; the leading one alone shows and writes.
int train_in(Options& options, const JobGroup& processes) {
  check_settings(options);
  // What does not fit is said before all else.
  if (options.settings.stages != "auto") layout_of(options.settings, processes.workers());
  std::optional<StopOnSignal> stop;
  if (processes.group()) stop.emplace();  // one rank that ends alone would be a failure
  TrainingJob job = make_job(options, processes.group());
  if (processes.group()) check_agreement(job, *processes.group());
  settle_layout(options, job);
  settle_cuts(options, job);
  const Ranks ranks = ranks_of(job);
  std::unique_ptr<Observer> shown = display_of(options, processes.leads());
  tell_before(options, ranks, *shown);
  if (!stop) stop.emplace();  // not before: while data are opened there is nothing to save
  std::optional<Writers> writers;
  std::vector<Observer*> observers;
  if (processes.leads()) {
    observers = writers.emplace(options).observers;
    observers.push_back(shown.get());
  }
  GuardedObserver guarded(observers, [&] { stop->stop(0); });
  TrainingOutcome outcome = train(job, {&guarded}, stop->request());
  guarded.check();
  if (writers && writers->report) writers->report->write();
  if (!outcome.stopped) return 0;
  shown->on_note(stopped_text(*stop, outcome, !options.settings.checkpoint.empty()));
  return kExitTerminated;
}

}  // namespace

int run_train(Options& options) {
  JobGroup processes(options);
  return processes.run([&] { return train_in(options, processes); });
}

}  // namespace convoy::cli
