// The metric lines about workers: where their time went, and what they did in one step.
#include <algorithm>
#include <cmath>

#include "cli/metrics_observer.h"

namespace convoy::cli {
namespace {

/// A spans line holds whole workers up to so many spans: about 1 MB.
constexpr std::size_t kMostSpans = 20000;

JsonObject states_json(const StateSeconds& seconds, double scale) {
  JsonObject object;
  for (int state = 0; state < kWorkerStates; ++state) {
    object.add(kStateNames[state], seconds[static_cast<std::size_t>(state)] * scale);
  }
  return object;
}

JsonObject account_json(const WorkerAccount& account) {
  const double wall = total(account.measured);
  return {{"worker", account.worker},
          {"replica", account.replica},
          {"stages", account.stages},
          {"seconds", states_json(account.measured, 1)},
          {"shares", states_json(account.measured, wall > 0 ? 1 / wall : 0)},
          {"predicted", states_json(account.predicted, 1)},
          {"peak_bytes", account.peak_bytes},
          {"predicted_peak_bytes", account.predicted_peak_bytes}};
}

/// In seconds from `origin`, to the nanosecond: clocks know no more.
std::string time_json(double time, double origin) {
  return to_json(std::round((time - origin) * 1e9) / 1e9);
}

std::string span_json(const Span& span, double origin) {
  return "[" + to_json(kStateNames[static_cast<int>(span.state)]) + "," +
         to_json(describe(span.instruction)) + "," +
         to_json(kTrackNames[static_cast<int>(span.track)]) + "," + time_json(span.begin, origin) +
         "," + time_json(span.end, origin) + "]";
}

std::string spans_json(const std::vector<Span>& spans, double origin) {
  std::string text;
  for (const Span& span : spans) text += (text.empty() ? "" : ",") + span_json(span, origin);
  return "[" + text + "]";
}

JsonObject worker_json(const WorkerSpans& worker, double origin) {
  JsonObject object{{"worker", worker.worker}, {"replica", worker.replica}};
  object.add_raw("measured", spans_json(worker.measured, origin));
  object.add_raw("predicted", spans_json(worker.predicted, 0));
  return object;
}

}  // namespace

std::string bubble_line(const WorkersEvent& event) {
  std::vector<JsonObject> workers;
  std::transform(event.workers.begin(), event.workers.end(), std::back_inserter(workers),
                 account_json);
  return JsonObject{{"type", "bubble"},
                    {"steps", event.steps},
                    {"step_s", event.step_s},
                    {"predicted_step_s", event.predicted_step_s},
                    {"workers", workers}}
      .text();
}

std::string spans_line(const SpansEvent& event) {
  const StepSpans& step = event.steps.back();
  std::vector<JsonObject> workers;
  std::size_t spans = 0;
  for (const WorkerSpans& worker : step.workers) {
    spans += worker.measured.size() + worker.predicted.size();
    if (spans > kMostSpans && !workers.empty()) break;
    workers.push_back(worker_json(worker, step.begin));
  }
  return JsonObject{{"type", "spans"},
                    {"step", step.step},
                    {"step_s", step.end - step.begin},
                    {"clock_error_s", event.clock_error_s},
                    {"all_workers", step.workers.size()},
                    {"workers", workers}}
      .text();
}

void MetricsObserver::on_spans(const SpansEvent& event) {
  if (!event.steps.empty()) write(spans_line(event));
}

}  // namespace convoy::cli
