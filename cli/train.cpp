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
#include "kernels/base/host_context.h"

namespace convoy::cli {
namespace {

void warn_of_threads(const Settings& settings, Observer& shown) {
  int threads = settings.threads.value_or(1);
  if (threads <= allowed_cores()) return;
  shown.on_warning(fmt::format("{} threads share the {} cores that this process may use", threads,
                               allowed_cores()));
}

}  // namespace

int run_train(Options& options) {
  StopOnSignal stop;
  check_settings(options);
  check_launcher([](const char* name) -> const char* { return std::getenv(name); });
  TrainingJob job = make_job(options);
  MetricsObserver metrics(options, versions());
  std::unique_ptr<Observer> shown = make_display(options.json, options.settings.data);
  warn_of_threads(job.settings, *shown);
  TrainingOutcome outcome = train(job, {&metrics, shown.get()}, stop.request());
  return outcome.stopped ? kExitTerminated : 0;
}

}  // namespace convoy::cli
