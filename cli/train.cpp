// `train`: a network, its data, observers, and the exit code.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "cli/check_settings.h"
#include "cli/commands.h"
#include "cli/metrics_observer.h"
#include "cli/progress_observer.h"
#include "cli/run_setup.h"
#include "cli/signals.h"
#include "engine/train/trainer.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

/// People read progress; with --json stdout belongs to the metric lines.
std::unique_ptr<Observer> display(const Options& options) {
  if (options.json) return std::make_unique<MessageObserver>();
  return std::make_unique<ProgressObserver>(stdout, stderr, progress_style(stdout),
                                            options.settings.data);
}

}  // namespace

int run_train(Options& options) {
  StopOnSignal stop;
  check_settings(options);
  check_launcher([](const char* name) -> const char* { return std::getenv(name); });
  TrainingJob job = make_job(options);
  MetricsObserver metrics(options, versions());
  std::unique_ptr<Observer> shown = display(options);
  TrainingOutcome outcome = train(job, {&metrics, shown.get()}, stop.request());
  return outcome.stopped ? kExitTerminated : 0;
}

}  // namespace convoy::cli
