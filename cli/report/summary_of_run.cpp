#include "cli/report/summary_of_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "cli/progress_format.h"
#include "cli/report/axis.h"
#include "cli/report/breakdown.h"
#include "cli/report/gantt.h"

namespace convoy::cli {
namespace {

std::optional<double> mean_loss(const RunRecord& run) {
  const std::size_t count = std::clamp<std::size_t>(run.steps.size() / 10, 1, 100);
  if (run.steps.empty()) return {};
  double sum = 0;
  for (std::size_t i = run.steps.size() - count; i < run.steps.size(); ++i) {
    sum += run.steps[i].loss;
  }
  return sum / static_cast<double>(count);
}

std::optional<Rate> rate_of(const RunRecord& run) {
  std::vector<double> rates;
  for (std::size_t i = run.steps.size() > 1 ? 1 : 0; i < run.steps.size(); ++i) {
    if (run.steps[i].images_per_s > 0) rates.push_back(run.steps[i].images_per_s);
  }
  if (rates.empty()) return {};
  std::sort(rates.begin(), rates.end());
  const auto at = [&](double share) {
    return rates[static_cast<std::size_t>(share * static_cast<double>(rates.size() - 1) + 0.5)];
  };
  return Rate{at(0.5), at(0.1), at(0.9), rates.size()};
}

std::optional<BestTop1> best_of(const RunRecord& run) {
  std::optional<BestTop1> best;
  for (const EvalPoint& eval : run.evals) {
    if (std::isfinite(eval.top1) && (!best || eval.top1 > best->top1)) {
      best = BestTop1{eval.top1, eval.epoch};
    }
  }
  return best;
}

const SweepRow* fastest_pipeline(const RunRecord& run) {
  const SweepRow* best = nullptr;
  for (const SweepRow& row : run.splits) {
    if (row.mode != "pipeline" || !(row.images_per_s > 0)) continue;
    if (!best || row.images_per_s > best->images_per_s) best = &row;
  }
  return best;
}

std::optional<double> known(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<SpeedUp> speed_up_of(const RunRecord& run) {
  const SweepRow* pipeline = fastest_pipeline(run);
  if (!pipeline || !std::isfinite(pipeline->speed_up)) return {};
  return SpeedUp{pipeline->split, pipeline->speed_up, known(pipeline->speed_up_same_split)};
}

std::optional<double> positive(double value) {
  return value > 0 ? std::optional(value) : std::nullopt;
}

int stages_of(const WorkersEvent& workers) {
  std::set<int> stages;
  std::size_t per_worker = 1;
  for (const WorkerAccount& account : workers.workers) {
    stages.insert(account.stages.begin(), account.stages.end());
    per_worker = std::max(per_worker, account.stages.size());
  }
  return static_cast<int>(stages.size() / per_worker);
}

void add_workers(const RunRecord& run, RunSummary& summary) {
  const WorkersEvent& workers = *run.workers;
  summary.step_s = positive(workers.step_s);
  summary.predicted_step_s = positive(workers.predicted_step_s);
  const int stages = stages_of(workers);
  if (stages < 2) return;
  summary.bubble = known(bubble_share(workers, false));
  summary.predicted_bubble = known(bubble_share(workers, true));
  if (run.spans) {
    summary.equal_stages_bubble = bubble_of_equal_stages(stages, micro_batches_of(*run.spans));
  }
}

std::string milliseconds(double seconds) {
  return short_number(seconds * 1e3) + " ms";
}

void add_bubble_facts(const RunSummary& summary, std::vector<Fact>& facts) {
  if (summary.step_s) {
    facts.push_back(
        {"step", milliseconds(*summary.step_s),
         summary.predicted_step_s ? "predicted " + milliseconds(*summary.predicted_step_s) : ""});
  }
  if (!summary.bubble) return;
  std::string remark;
  if (summary.predicted_bubble) remark = "predicted " + percent(*summary.predicted_bubble);
  if (summary.equal_stages_bubble) {
    remark += (remark.empty() ? "" : "; ") +
              fmt::format("equal stages {}", percent(*summary.equal_stages_bubble));
  }
  facts.push_back({"bubble", percent(*summary.bubble), remark});
}

void add_speed_up_fact(const SpeedUp& gain, std::vector<Fact>& facts) {
  std::string remark = fmt::format("pipeline at split {} over one device with the whole batch",
                                   short_number(gain.split));
  if (gain.against_same_split) {
    remark += fmt::format("; {:.2f}x over one device in the same micro-batches",
                          *gain.against_same_split);
  }
  facts.push_back({"speed-up", fmt::format("{:.2f}x", gain.against_whole), remark});
}

}  // namespace

RunSummary summary_of(const RunRecord& run) {
  RunSummary summary;
  if (!run.steps.empty()) summary.steps = run.steps.back().step;
  if (run.end) {
    summary.steps = run.end->steps;
    summary.seconds = run.end->seconds;
  }
  summary.loss = mean_loss(run);
  summary.best = best_of(run);
  summary.rate = rate_of(run);
  if (run.workers) add_workers(run, summary);
  summary.speed_up = speed_up_of(run);
  return summary;
}

std::vector<Fact> facts_of(const RunSummary& summary) {
  std::vector<Fact> facts;
  if (summary.best) {
    facts.push_back({"best top-1", percent(summary.best->top1),
                     fmt::format("epoch {}", short_number(summary.best->epoch))});
  }
  if (summary.loss)
    facts.push_back({"loss", short_number(*summary.loss), "mean of the last steps"});
  if (summary.rate) {
    facts.push_back({"images/s", rate(summary.rate->median),
                     fmt::format("median of {} steps; 80 % lie in {} to {}", summary.rate->steps,
                                 rate(summary.rate->low), rate(summary.rate->high))});
  }
  add_bubble_facts(summary, facts);
  if (summary.speed_up) add_speed_up_fact(*summary.speed_up, facts);
  if (summary.steps) {
    facts.push_back({"steps", grouped(*summary.steps),
                     summary.seconds ? "in " + duration(*summary.seconds) + " of training"
                                     : "the run did not come to its end"});
  }
  return facts;
}

}  // namespace convoy::cli
