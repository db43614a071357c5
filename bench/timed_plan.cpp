#include "bench/timed_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <tuple>

#include "bench/made_up.h"
#include "bench/median.h"
#include "bench/timed_program.h"
#include "engine/data/order.h"
#include "engine/nn/slice.h"
#include "engine/parallel/pipeline/auto_cut.h"
#include "engine/train/defaults.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr std::size_t kBest = 3;
constexpr double kTimingSeconds = 30;  // for all measured steps together
constexpr std::int64_t kFewestSteps = 3;
constexpr std::int64_t kMostSteps = 9;

// Candidates to run: the fastest ones, no two with one schedule on as many stages, and the fastest
// without a pipeline.
std::vector<const PlanCandidate*> chosen(const std::vector<PlanCandidate>& candidates, bool alone) {
  std::vector<const PlanCandidate*> best;
  bool replicas = false, single = false;
  std::set<std::tuple<int, int, std::string>> seen;
  for (const PlanCandidate& candidate : candidates) {
    if (!candidate.dropped.empty()) continue;
    const bool is_single = candidate.layout == "single";
    if (is_single && !alone) continue;
    const bool first_of_kind =
        (candidate.layout == "data-parallel" && !replicas) || (is_single && !single);
    if (best.size() >= kBest && !first_of_kind) continue;
    const std::tuple kind(candidate.replicas, candidate.stages, candidate.schedule);
    if (!seen.insert(kind).second) continue;
    best.push_back(&candidate);
    replicas = replicas || candidate.layout == "data-parallel";
    single = single || is_single;
  }
  return best;
}

// What the leader has chosen, as a line a candidate, for the others.
std::string text_of(const PlannedLayout& layout) {
  const Settings& s = layout.settings;
  std::string warm_up = "-";
  for (int forwards : layout.warm_up) warm_up += fmt::format("{},", forwards);
  return fmt::format("{} {} {} {} {} {} {} {} {} {}\n", *s.replicas, s.stages, s.stages_per_worker,
                     s.schedule, *s.micro_batch_size, s.recompute ? 1 : 0, s.cut, layout.forecast_s,
                     layout.place, warm_up);
}

PlannedLayout layout_from(const std::string& line, Settings settings) {
  PlannedLayout layout;
  std::int64_t replicas = 0, size = 0;
  int recompute = 0;
  std::string warm_up;
  std::istringstream words(line);
  words >> replicas >> settings.stages >> settings.stages_per_worker >> settings.schedule >> size >>
      recompute >> settings.cut >> layout.forecast_s >> layout.place >> warm_up;
  CONVOY_DCHECK(words, "plan: a layout reads '{}'", line);
  settings.replicas = replicas;
  settings.micro_batch_size = size;
  settings.micro_batches.reset();
  settings.recompute = recompute != 0;
  std::istringstream numbers(warm_up.substr(1));
  for (std::string number; std::getline(numbers, number, ',');) {
    layout.warm_up.push_back(std::stoi(number));
  }
  layout.settings = std::move(settings);
  return layout;
}

std::vector<PlannedLayout> agreed_layouts(const TrainingJob& job, const Ranks& ranks,
                                          const LocalPlan& plan, bool alone) {
  std::string text;
  if (ranks.leads()) {
    for (const PlanCandidate* candidate : chosen(plan.candidates, alone)) {
      PlannedLayout layout =
          layout_of_candidate(job.settings, *job.network, plan.costs->profile(), *candidate);
      layout.place = static_cast<std::size_t>(candidate - plan.candidates.data());
      text += text_of(layout);
    }
  }
  std::istringstream lines(ranks.from_leader(text));
  std::vector<PlannedLayout> layouts;
  for (std::string line; std::getline(lines, line);) {
    layouts.push_back(layout_from(line, job.settings));
  }
  return layouts;
}

// Runs a layout; all processes make it, step it and drop it together.
std::unique_ptr<TimedProgram> program_of(const TrainingJob& job, const Ranks& ranks,
                                         const PlannedLayout& layout) {
  TrainingJob run;
  run.settings = resolved_settings(layout.settings, job.network->takes_rows());
  run.make_network = job.make_network;
  run.network = job.make_network();
  run.buckets = job.buckets;
  run.image_size = job.image_size;
  run.warm_up = layout.warm_up;
  const int replicas = static_cast<int>(*layout.settings.replicas);
  const bool alone = replicas == 1 && layout.settings.stages == "1";
  if (alone) {
    run.settings.devices.resize(1);
  } else {
    run.group = job.group;
  }
  const std::vector<std::int64_t> shares = shares_of(job.settings.batch, replicas);
  const bool one_hot = run.settings.loss == "mse" && !job.network->takes_rows();
  const Ranks of_run(run.group, alone ? Layout{} : layout_of(run.settings, ranks.workers()));
  const bool takes_part = !alone || ranks.leads();
  std::shared_ptr<ReadyBatches> feed;
  if (takes_part) {
    feed = std::make_shared<ReadyBatches>(std::vector<HostBatch>{
        made_up_batch(*job.network, shares, of_run, job.image_size, one_hot)});
  }
  return std::make_unique<TimedProgram>(run, ranks, feed, shares, takes_part);
}

// The leader's clock counts.
double step(TimedProgram& program, const Ranks& ranks) {
  return std::stod(ranks.from_leader(fmt::format("{}", program.step())));
}

std::int64_t steps_within(double seconds_of_all) {
  const double steps = kTimingSeconds / std::max(1e-6, seconds_of_all);
  return std::clamp(static_cast<std::int64_t>(steps), kFewestSteps, kMostSteps);
}

void sum_up(TimedLayout& timed) {
  timed.median_s = median(timed.seconds);
  const auto [least, most] = std::minmax_element(timed.seconds.begin(), timed.seconds.end());
  timed.spread_s = (*most - *least) / 2;
}

// The leader takes part in all.
bool fits(const TimedProgram& program, const Ranks& ranks, TimedLayout& timed) {
  timed.dropped = ranks.from_leader(program.failure());
  return timed.dropped.empty();
}

// Turn about. The first step of each is dropped: it makes primitives and takes memory.
void run_together(const TrainingJob& job, const Ranks& ranks, std::vector<TimedLayout>& timed,
                  std::size_t first, std::size_t end) {
  std::vector<std::unique_ptr<TimedProgram>> programs;
  double seconds = 0;
  for (std::size_t i = first; i < end; ++i) {
    programs.push_back(program_of(job, ranks, timed[i].layout));
    if (fits(*programs.back(), ranks, timed[i])) step(*programs.back(), ranks);
    if (!fits(*programs.back(), ranks, timed[i])) programs.back().reset();
    seconds += timed[i].layout.forecast_s;
  }
  const std::int64_t steps =
      steps_within(seconds * static_cast<double>(timed.size()) / static_cast<double>(end - first));
  for (std::int64_t k = 0; k < steps; ++k) {
    for (std::size_t i = first; i < end; ++i) {
      if (programs[i - first]) timed[i].seconds.push_back(step(*programs[i - first], ranks));
    }
  }
}

// Under a cap on memory there is room for one at a time.
void run_all(const TrainingJob& job, const Ranks& ranks, std::vector<TimedLayout>& timed) {
  const std::size_t at_once = job.settings.device_memory ? 1 : timed.size();
  for (std::size_t first = 0; first < timed.size(); first += at_once) {
    run_together(job, ranks, timed, first, std::min(first + at_once, timed.size()));
  }
}

std::vector<TimedLayout> not_timed(std::vector<PlannedLayout> layouts,
                                   const std::vector<TimedLayout>& timed) {
  std::vector<TimedLayout> left;
  for (PlannedLayout& layout : layouts) {
    const bool known = std::any_of(timed.begin(), timed.end(), [&](const TimedLayout& each) {
      return each.layout.place == layout.place;
    });
    if (!known) left.push_back({std::move(layout), {}, 0, 0, {}});
  }
  return left;
}

}  // namespace

PlannedLayout layout_of_candidate(Settings settings, const Network& network, const Profile& profile,
                                  const PlanCandidate& candidate) {
  settings.replicas = candidate.replicas;
  settings.stages = std::to_string(candidate.stages * candidate.stages_per_worker);
  settings.stages_per_worker = candidate.stages_per_worker;
  settings.schedule = candidate.schedule;
  settings.micro_batch_size = candidate.micro_batch_size;
  settings.micro_batches.reset();
  settings.recompute = candidate.recompute;
  settings.cut.clear();
  for (int place : places_of(profile, candidate.node_ends)) {
    settings.cut += (settings.cut.empty() ? "" : ",") + cut_name(network, place);
  }
  if (settings.cut.empty()) settings.cut = "auto";
  return {std::move(settings), candidate.warm_up, candidate.seconds, 0};
}

std::vector<TimedLayout> time_plan(const TrainingJob& job, const Ranks& ranks, LocalPlan& plan,
                                   bool alone) {
  std::vector<TimedLayout> timed;
  std::string reason;
  for (bool goes_on = true; goes_on;) {
    std::vector<TimedLayout> next = not_timed(agreed_layouts(job, ranks, plan, alone), timed);
    run_all(job, ranks, next);
    goes_on = false;
    for (TimedLayout& each : next) {
      if (each.dropped.empty()) {
        sum_up(each);
        timed.push_back(std::move(each));
        continue;
      }
      goes_on = true;
      reason = each.dropped;
      if (ranks.leads()) plan.candidates[each.layout.place].dropped = each.dropped;
    }
  }
  if (timed.empty()) CONVOY_FAIL(resource, "plan: no layout fits; the last one: {}", reason);
  return timed;
}

const TimedLayout& fastest_layout(const std::vector<TimedLayout>& timed) {
  const TimedLayout* safe = nullptr;
  const TimedLayout* pipeline = nullptr;
  for (const TimedLayout& each : timed) {
    const TimedLayout*& best = each.is_pipeline() ? pipeline : safe;
    if (!best || each.median_s < best->median_s) best = &each;
  }
  CONVOY_CHECK(safe || pipeline, "plan: no layout was timed");
  if (!safe) return *pipeline;
  if (!pipeline) return *safe;
  const double gain = safe->median_s - pipeline->median_s;
  return gain > safe->spread_s + pipeline->spread_s ? *pipeline : *safe;
}

}  // namespace convoy
