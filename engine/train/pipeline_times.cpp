// A pipeline's time: what all workers tell, gathered at the leader, with the forecast beside it.
#include <algorithm>

#include "comm/host_values.h"
#include "engine/train/clock_offsets.h"
#include "engine/train/forecast.h"
#include "engine/train/pipeline_runner.h"

namespace convoy {

// Of all workers by rank, in the process of rank 0 or in all of them.
std::vector<WorkerReport> PipelineRunner::all_reports(bool reset, Readers readers) {
  const int reader = readers == Readers::all ? group_.first_rank() : 0;
  std::vector<std::string> texts;
  run([&](StageWorker& worker) {
    std::vector<std::string> all = gather_texts(worker.control(), write_report(worker.report()));
    if (worker.rank() == reader) texts = std::move(all);
    if (reset) worker.reset_times();
  });
  std::vector<WorkerReport> reports;
  for (const std::string& text : texts) reports.push_back(read_report(text));
  return reports;
}

WorkersEvent PipelineRunner::account() {
  const std::vector<WorkerReport> reports = all_reports(true);
  const auto windows = std::exchange(windows_, {});
  WorkersEvent event;
  for (const auto& [shares, steps] : windows) event.steps += steps;
  if (reports.empty() || event.steps == 0) return event;
  for (const WorkerReport& report : reports) event.workers.push_back(report.account);
  const Forecast forecast(setup_.layout, setup_.map, reports, size_of(dtype_), setup_.slots);
  for (const auto& [shares, steps] : windows) {
    const MicroBatchPlan plan(shares, options_.division);
    const Schedule& schedule = tables_.training(plan.count());
    std::vector<Timeline> timelines;
    std::vector<std::vector<MemoryPeak>> peaks;
    double longest = 0;
    for (int replica = 0; replica < setup_.layout.replicas; ++replica) {
      timelines.push_back(forecast.window(schedule, plan, replica));
      longest = std::max(longest, timelines.back().makespan);
      peaks.push_back(forecast.peaks(schedule, plan, replica));
    }
    for (WorkerAccount& account : event.workers) {
      const Timeline& timeline = timelines[static_cast<std::size_t>(account.replica)];
      const auto position = static_cast<std::size_t>(setup_.layout.position_of(account.worker));
      const double bytes = peaks[static_cast<std::size_t>(account.replica)][position].bytes;
      account.predicted_peak_bytes = std::max(account.predicted_peak_bytes, bytes);
      StateSeconds states = forecast.states(timeline, plan, account.worker);
      // Replicas end together.
      at(states, WorkerState::all_reduce) += longest - timeline.makespan;
      for (std::size_t i = 0; i < states.size(); ++i) {
        account.predicted[i] += states[i] * static_cast<double>(steps);
      }
    }
    event.predicted_step_s += longest * static_cast<double>(steps);
  }
  event.predicted_step_s /= static_cast<double>(event.steps);
  event.step_s = total(event.workers.front().measured) / static_cast<double>(event.steps);
  return event;
}

void PipelineRunner::keep_spans(bool on) {
  keeps_spans_ = on;
  for (const auto& worker : workers_) worker->keep_spans(on);
}

SpansEvent PipelineRunner::take_spans() {
  std::vector<std::string> texts;
  std::vector<StageWorker::KeptStep> steps;
  SpansEvent event;
  run([&](StageWorker& worker) {
    const ClockOffset offset =
        offset_to_leader(worker.control(), group_.first_rank() == 0, group_.local_workers());
    std::vector<WorkerSpans> mine;
    std::vector<StageWorker::KeptStep> kept = worker.take_steps();
    for (const StageWorker::KeptStep& step : kept) {
      mine.push_back({worker.rank(), worker.replica(), spans_of(step.spans, offset.seconds), {}});
    }
    std::vector<std::string> all = gather_texts(worker.control(), write_spans(mine));
    if (worker.rank() != 0) return;
    event.clock_error_s = offset.error;
    texts = std::move(all);
    steps = std::move(kept);
  });
  const std::vector<WorkerReport> reports = all_reports(false);
  const auto shares = std::exchange(kept_, {});
  if (texts.empty() || steps.empty()) return event;
  for (const StageWorker::KeptStep& step : steps) {
    event.steps.push_back({step.step, step.begin, step.end, {}});
  }
  for (const std::string& text : texts) {
    std::vector<WorkerSpans> of_worker = read_spans(text);
    for (std::size_t i = 0; i < of_worker.size() && i < event.steps.size(); ++i) {
      event.steps[i].workers.push_back(std::move(of_worker[i]));
    }
  }
  const Forecast forecast(setup_.layout, setup_.map, reports, size_of(dtype_), setup_.slots);
  for (StepSpans& step : event.steps) {
    const MicroBatchPlan plan(shares.at(step.step), options_.division);
    for (WorkerSpans& worker : step.workers) {
      const Timeline timeline =
          forecast.window(tables_.training(plan.count()), plan, worker.replica);
      worker.predicted = spans_of(timeline, setup_.layout.position_of(worker.worker));
    }
  }
  return event;
}

}  // namespace convoy
