#include "cli/plan_setup.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/timed_plan.h"
#include "cli/plan_output.h"
#include "cli/read_options.h"
#include "cli/run_setup.h"
#include "cli/setup.h"
#include "cli/value.h"
#include "engine/nn/slice.h"
#include "engine/train/batch_plan.h"
#include "engine/train/layout.h"
#include "engine/train/local_plan.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

void check_no_table(const Settings& settings) {
  CONVOY_CHECK(
      !schedule_is_file(settings),
      "--schedule {}: planning takes the schedules that it knows by name, a table fits one "
      "layout alone; convoy train --stages S --schedule {} runs it and tells its time",
      settings.schedule, settings.schedule);
}

}  // namespace

PlanTask plan_task_of(const Options& options, const Network& network, int workers) {
  const Settings& settings = options.settings;
  PlanTask task;
  task.batch = settings.batch;
  task.accumulate = settings.accumulate;
  task.recompute = settings.recompute;
  task.stages_per_worker = static_cast<int>(settings.stages_per_worker);
  task.least_images = least_micro_batch(network, settings.bn, *settings.image_size);
  if (settings.replicas) task.replicas = static_cast<int>(*settings.replicas);
  check_no_table(settings);
  if (was_given(options, "schedule")) task.schedule = find_schedule(settings.schedule).name;
  if (was_given(options, "stages") && settings.stages != "auto") {
    const Layout layout = layout_of(settings, workers);
    task.stages = layout.workers_per_replica;
    task.replicas = layout.replicas;
  }
  task.micro_batch_size = settings.micro_batch_size;
  if (settings.micro_batches) {
    CONVOY_CHECK(task.replicas,
                 "--micro-batches {}: say how many images each has with --micro-batch-size, or how "
                 "many --replicas share the batch",
                 *settings.micro_batches);
    const std::int64_t share = settings.batch / task.replicas.value_or(1);
    task.micro_batch_size =
        split_batch(std::max<std::int64_t>(share, 1), {.count = settings.micro_batches}).front();
  }
  return task;
}

std::vector<int> given_cuts(const Settings& settings, const Network& network) {
  std::vector<int> places;
  if (settings.cut == "auto") return places;
  for (const std::string& name : read_list({settings.cut, "--cut"})) {
    places.push_back(find_cut(network, name));
  }
  return places;
}

void tell_measuring(const Ranks& ranks) {
  if (!ranks.leads()) return;
  print_notes({fmt::format("plan: measures layers and links of {} worker{}", ranks.workers(),
                           ranks.workers() == 1 ? "" : "s")});
}

void tell_timing(const Ranks& ranks, const LocalPlan& plan) {
  if (!ranks.leads()) return;
  print_notes({fmt::format("plan: runs the best of {} candidate{}", plan.candidates.size(),
                           plan.candidates.size() == 1 ? "" : "s")});
}

void settle_layout(Options& options, TrainingJob& job) {
  Settings& settings = options.settings;
  if (settings.stages != "auto") return;
  CONVOY_CHECK(settings.cut == "auto", "--cut {}: it goes with a number of --stages, not with auto",
               settings.cut);
  const Ranks ranks(job.group);
  const PlanTask task = plan_task_of(options, *job.network, ranks.workers());
  tell_measuring(ranks);
  LocalPlan plan = plan_here(job, ranks, task);
  tell_timing(ranks, plan);
  const std::vector<TimedLayout> timed = time_plan(job, ranks, plan, ranks.workers() == 1);
  const PlannedLayout& best = fastest_layout(timed).layout;
  if (ranks.leads()) {
    const PlanCandidate& taken = plan.candidates[best.place];
    print_notes(timed_text(plan.candidates, timed));
    print_notes({fmt::format("plan: takes {}", candidate_text(taken))});
  }
  settings = job.settings = best.settings;
  job.warm_up = best.warm_up;
  job.settings_json = settings_json(options);
}

}  // namespace convoy::cli
