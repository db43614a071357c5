// `plan`: which layout trains a network fastest, on the devices at hand, which are measured, or on
// a cluster described in a file.
#include <fmt/format.h>

#include <algorithm>

#include "bench/timed_plan.h"
#include "cli/check_settings.h"
#include "cli/cluster_file.h"
#include "cli/commands.h"
#include "cli/job_group.h"
#include "cli/plan_output.h"
#include "cli/plan_setup.h"
#include "cli/read_options.h"
#include "cli/setup.h"
#include "cli/value.h"
#include "engine/nn/slice.h"
#include "engine/parallel/pipeline/auto_cut.h"
#include "engine/parallel/pipeline/roofline.h"
#include "engine/train/batch_plan.h"
#include "engine/train/defaults.h"
#include "engine/train/layout.h"
#include "engine/train/local_plan.h"
#include "engine/train/setup.h"
#include "engine/train/trainer.h"
#include "kernels/base/error.h"
#include "models/models.h"

namespace convoy::cli {
namespace {

constexpr std::int64_t kClasses = 1000;

// Flags of layouts are wishes here; all else is checked as for training.
void check_plan_settings(Options& options) {
  settle_rivals(options, "micro-batch-size", "micro-batches");
  Options others = options;
  others.settings.stages = Settings().stages;
  others.settings.cut = Settings().cut;
  others.settings.recompute = false;
  check_settings(others);
  const Settings& settings = options.settings;
  CONVOY_CHECK(settings.cut == "auto" || was_given(options, "stages"),
               "--cut {}: say how many stages there are with --stages", settings.cut);
}

TrainingJob job_of(Options& options, convoy::Group* group) {
  Settings& settings = options.settings;
  settings.image_size = settings.image_size.value_or(kImageSize);
  TrainingJob job;
  job.make_network = [model = settings.model, classes = settings.classes.value_or(kClasses)] {
    return make_model_without_values(model, classes);
  };
  job.network = job.make_network();
  job.group = group;
  job.image_size = *settings.image_size;
  job.settings = settings;
  return job;
}

void print(const Options& options, const PlanReport& report) {
  print_notes(options.notes);
  for (const std::string& line : options.json ? plan_json(report) : plan_text(report)) {
    print_line(line);
  }
}

int plan_of_cluster(Options& options) {
  check_plan_settings(options);
  const Cluster cluster = read_cluster_file(options.cluster);
  const TrainingJob job = job_of(options, nullptr);
  const double states =
      optimizer_states(resolved_settings(job.settings, takes_rows(job.settings.model)));
  const auto profile_of = [&](std::int64_t images) {
    return roofline_profile(*job.network, cluster.devices, images, job.image_size, states);
  };
  PlanTask task = plan_task_of(options, *job.network, cluster.machine.workers);
  task.machine = cluster.machine;
  for (const DeviceRates& device : cluster.devices) {
    task.machine.step_s_per_byte.push_back(step_seconds_per_byte(device, states));
  }
  task.nodes_at = [&](std::int64_t images) { return profile_of(images).nodes; };
  const Profile profile = profile_of(1);
  const std::vector<int> cuts = given_cuts(options.settings, *job.network);
  if (!cuts.empty()) task.node_ends = node_ends_of(profile, cuts);
  const std::vector<PlanCandidate> candidates = plan_layouts(task);
  print(options,
        {*job.network,
         profile,
         task,
         candidates,
         recommended(candidates),
         fmt::format("{} ({} workers), not measured", cluster.name, cluster.machine.workers),
         {}});
  return 0;
}

// Every process runs this; the leading one alone shows.
int plan_here_in(Options& options, const JobGroup& processes) {
  check_plan_settings(options);
  Settings& settings = options.settings;
  prepare_workers(settings, processes.group());
  const TrainingJob job = job_of(options, processes.group());
  const Ranks ranks(processes.group());
  const int sharing = workers_on_these_cores(ranks);
  if (processes.leads()) print_warnings(device_warnings(settings, sharing));
  tell_measuring(ranks);
  LocalPlan plan = plan_here(job, ranks, plan_task_of(options, *job.network, ranks.workers()),
                             given_cuts(settings, *job.network));
  if (processes.leads()) recommended(plan.candidates);  // fails where nothing can be run
  tell_timing(ranks, plan);
  const std::vector<TimedLayout> timed = time_plan(job, ranks, plan, true);
  if (!processes.leads()) return 0;
  const PlanCandidate& best = plan.candidates[fastest_layout(timed).layout.place];
  print(options, {*job.network, plan.costs->profile(), plan.task, plan.candidates, best,
                  fmt::format("{} worker(s) of {} thread(s) on {}", ranks.workers(),
                              *settings.threads, fmt::join(settings.devices, ", ")),
                  timed});
  return 0;
}

}  // namespace

int run_plan(Options& options) {
  if (!options.cluster.empty()) return plan_of_cluster(options);
  JobGroup processes(options);
  return processes.run([&] { return plan_here_in(options, processes); });
}

}  // namespace convoy::cli
