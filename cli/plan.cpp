// `plan`: which layout trains a network fastest, on the devices at hand, which are measured, or on
// a cluster described in a file.
#include <fmt/format.h>

#include <algorithm>

#include "cli/check_settings.h"
#include "cli/cluster_file.h"
#include "cli/commands.h"
#include "cli/job_group.h"
#include "cli/plan_output.h"
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

// What the layout's flags say, where they were given: the rest is open.
PlanTask narrowed(const Options& options, const Network& network, int workers) {
  const Settings& settings = options.settings;
  PlanTask task;
  task.batch = settings.batch;
  task.accumulate = settings.accumulate;
  task.recompute = settings.recompute;
  task.stages_per_worker = static_cast<int>(settings.stages_per_worker);
  task.least_images = least_micro_batch(network, settings.bn, *settings.image_size);
  if (settings.replicas) task.replicas = static_cast<int>(*settings.replicas);
  if (was_given(options, "schedule")) task.schedule = find_schedule(settings.schedule).name;
  if (was_given(options, "stages") && settings.stages != "auto") {
    const Layout layout = layout_of(settings, workers);
    task.stages = layout.workers_per_replica;
    task.replicas = layout.replicas;
  }
  task.micro_batch_size = settings.micro_batch_size;
  if (settings.micro_batches) {
    const std::int64_t share = settings.batch / task.replicas.value_or(1);
    task.micro_batch_size =
        split_batch(std::max<std::int64_t>(share, 1), {.count = settings.micro_batches}).front();
  }
  return task;
}

// Those of --cut; none for `auto`.
std::vector<int> given_cuts(const Settings& settings, const Network& network) {
  std::vector<int> places;
  if (settings.cut == "auto") return places;
  for (const std::string& name : read_list({settings.cut, "--cut"})) {
    places.push_back(find_cut(network, name));
  }
  return places;
}

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
  CONVOY_CHECK(!settings.micro_batches || settings.replicas || settings.stages != "1",
               "--micro-batches {}: say how many images each has with --micro-batch-size, or how "
               "many --replicas share the batch",
               settings.micro_batches.value_or(0));
}

TrainingJob job_of(Options& options, convoy::Group* group) {
  Settings& settings = options.settings;
  settings.image_size = settings.image_size.value_or(kImageSize);
  TrainingJob job;
  job.make_network = [model = settings.model, classes = settings.classes.value_or(kClasses),
                      seed = settings.seed] { return make_model(model, classes, seed); };
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
  PlanTask task = narrowed(options, *job.network, cluster.machine.workers);
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
        {*job.network, profile, task, candidates, recommended(candidates),
         fmt::format("{} ({} workers), not measured", cluster.name, cluster.machine.workers)});
  return 0;
}

// Every process runs this; the leading one alone shows.
int plan_here_in(Options& options, const JobGroup& processes) {
  check_plan_settings(options);
  Settings& settings = options.settings;
  settings.threads = threads_per_worker(settings, processes.group());
  const TrainingJob job = job_of(options, processes.group());
  const Ranks ranks(processes.group());
  if (processes.leads()) print_warnings(device_warnings(settings, workers_on_these_cores(ranks)));
  const LocalPlan plan = plan_here(job, ranks, narrowed(options, *job.network, ranks.workers()),
                                   given_cuts(settings, *job.network));
  if (!processes.leads()) return 0;
  print(options, {*job.network, plan.costs->profile(), plan.task, plan.candidates,
                  recommended(plan.candidates),
                  fmt::format("{} worker(s) of {} thread(s) on {}", ranks.workers(),
                              *settings.threads, fmt::join(settings.devices, ", "))});
  return 0;
}

}  // namespace

int run_plan(Options& options) {
  if (!options.cluster.empty()) return plan_of_cluster(options);
  JobGroup processes(options);
  return processes.run([&] { return plan_here_in(options, processes); });
}

}  // namespace convoy::cli
