// `train`: a network, its data, observers, and the exit code.
#include <cstdlib>
#include <memory>

#include "cli/check_settings.h"
#include "cli/commands.h"
#include "cli/guarded_observer.h"
#include "cli/metrics_observer.h"
#include "cli/progress_observer.h"
#include "cli/run_setup.h"
#include "cli/signals.h"
#include "engine/train/trainer.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

void tell_before(const Options& options, Observer& shown) {
  for (const std::string& text : device_warnings(options.settings)) shown.on_warning(text);
  for (const auto& notes : {options.notes, idle_notes(options)}) {
    for (const std::string& note : notes) shown.on_note(note);
  }
}

std::string stopped_text(const StopOnSignal& stop, const TrainingOutcome& outcome, bool saves) {
  return fmt::format("stopped by {} at step {}; {}", stop.signal_name(), outcome.end.steps,
                     saves ? "go on with --resume" : "nothing is saved without --checkpoint");
}

}  // namespace

int run_train(Options& options) {
  check_settings(options);
  check_launcher([](const char* name) -> const char* { return std::getenv(name); });
  TrainingJob job = make_job(options);
  MetricsObserver metrics(options, versions());
  std::unique_ptr<Observer> shown = make_display(options.json, options.settings.data);
  tell_before(options, *shown);
  StopOnSignal stop;  // not before: while data are opened there is nothing to save
  GuardedObserver guarded({&metrics, shown.get()}, [&] { stop.stop(0); });
  TrainingOutcome outcome = train(job, {&guarded}, stop.request());
  guarded.check();
  if (!outcome.stopped) return 0;
  shown->on_note(stopped_text(stop, outcome, !options.settings.checkpoint.empty()));
  return kExitTerminated;
}

}  // namespace convoy::cli
