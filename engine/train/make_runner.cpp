// From a job to the workers that carry it out: one alone, or a pipeline of any layout.
#include <fmt/format.h>

#include <map>
#include <set>

#include "comm/nccl_devices.h"
#include "engine/nn/layers.h"
#include "engine/train/defaults.h"
#include "engine/train/graph_runner.h"
#include "engine/train/local_runner.h"
#include "engine/train/pipeline_runner.h"
#include "engine/train/setup.h"
#include "engine/train/stage_cuts.h"
#include "kernels/base/error.h"

namespace convoy {

std::unique_ptr<Optimizer> make_optimizer(const Settings& s, NamedTensors parameters) {
  if (s.optimizer == "sgd") {
    return std::make_unique<Sgd>(std::move(parameters), SgdOptions{.lr = *s.lr,
                                                                   .momentum = s.momentum,
                                                                   .weight_decay = *s.weight_decay,
                                                                   .nesterov = s.nesterov});
  }
  if (s.optimizer == "lars") {
    return std::make_unique<Lars>(std::move(parameters),
                                  LarsOptions{.lr = *s.lr,
                                              .momentum = s.momentum,
                                              .weight_decay = *s.weight_decay,
                                              .nesterov = s.nesterov});
  }
  CONVOY_CHECK(s.optimizer == "adamw", "optimizer: '{}' is none of sgd, lars, adamw", s.optimizer);
  return std::make_unique<Adamw>(std::move(parameters),
                                 AdamwOptions{.lr = *s.lr, .weight_decay = *s.weight_decay});
}

namespace {

RunnerOptions runner_options(const Settings& settings, std::size_t which) {
  RunnerOptions options;
  options.device = prepare_device(settings, which).device();
  options.dtype = dtype_of_precision(settings);
  options.loss = settings.loss == "mse" ? LossKind::mse : LossKind::cross_entropy;
  options.label_smoothing = settings.label_smoothing;
  options.clip_grad = settings.clip_grad;
  options.micro_batches = {settings.micro_batch_size, settings.micro_batches};
  options.recompute = settings.recompute;
  options.device_memory = static_cast<std::size_t>(settings.device_memory.value_or(0));
  return options;
}

// Kinds round differently: from the first update on, replicas would not have the same weights.
void check_kinds(const std::vector<std::string>& devices, int workers) {
  CONVOY_CHECK(std::ssize(devices) == workers, "devices: {} given for {} worker(s)", devices.size(),
               workers);
  for (const std::string& name : devices) {
    CONVOY_CHECK(Device(name).type == Device(devices.front()).type,
                 "--devices: {} and {} are of different kinds, which round differently",
                 to_string(Device(devices.front())), to_string(Device(name)));
  }
}

// What two workers on one GPU cannot do, before they are made.
void check_sharing(const Settings& settings, const Ranks& ranks, bool nccl) {
  std::map<Device, std::set<int>> positions;
  for (std::size_t i = 0; i < settings.devices.size(); ++i) {
    const Device device(settings.devices[i]);
    const int position = ranks.layout().position_of(ranks.first_worker() + static_cast<int>(i));
    CONVOY_CHECK(!settings.device_memory || !positions.contains(device),
                 "--device-memory caps what a worker has of its device, but {} is named twice",
                 to_string(device));
    CONVOY_CHECK(positions[device].insert(position).second || !nccl,
                 "--devices: {} is named twice, for the same stage of two replicas: NCCL adds "
                 "gradients of GPUs of their own, --comm thread or mpi those of shared ones too",
                 to_string(device));
  }
}

// A network for each replica of this process: its workers have different layers of it.
std::vector<WorkerParts> make_workers(const TrainingJob& job, const Settings& settings,
                                      const Ranks& ranks) {
  std::vector<WorkerParts> workers;
  std::map<int, std::shared_ptr<Network>> networks;
  for (std::size_t i = 0; i < settings.devices.size(); ++i) {
    const int rank = ranks.first_worker() + static_cast<int>(i);
    std::shared_ptr<Network>& network = networks[ranks.layout().replica_of(rank)];
    if (!network) {
      CONVOY_CHECK(i == 0 || job.make_network, "training: nothing makes a second network");
      network = i == 0 ? job.network : job.make_network();
      set_batch_norm_mode(*network, batch_norm_mode(settings));
    }
    WorkerParts& worker = workers.emplace_back();
    worker.network = network;
    worker.seed = settings.seed;
    worker.options = runner_options(settings, i);
    worker.make_optimizer = [settings](NamedTensors parameters) {
      return make_optimizer(settings, std::move(parameters));
    };
  }
  return workers;
}

std::unique_ptr<StepRunner> make_local_runner(WorkerParts parts, bool graph) {
  Network& network = *parts.network;
  network.materialize(parts.options.device, parameter_type(parts.options.dtype), parts.seed);
  network.to(parameter_type(parts.options.dtype));
  network.to(parts.options.device);
  auto optimizer = parts.make_optimizer(network.named_parameters());
  if (graph) {
    return std::make_unique<GraphRunner>(std::move(parts.network), std::move(optimizer),
                                         parts.options);
  }
  return std::make_unique<LocalRunner>(std::move(parts.network), std::move(optimizer),
                                       parts.options);
}

}  // namespace

void check_named_once(const Settings& settings) {
  std::set<Device> named;
  for (const std::string& name : settings.devices) {
    const Device device(name);
    CONVOY_CHECK(is_gpu(device) || named.insert(device).second,
                 "--devices {}: {} is named twice, which only GPUs may be",
                 fmt::join(settings.devices, ","), to_string(device));
  }
}

bool uses_nccl(const Settings& settings, const Ranks& ranks) {
  bool others = false;
  for (const std::string& name : settings.devices) others = others || !is_gpu(Device(name));
  others = ranks.any(others);
  CONVOY_CHECK(settings.comm != "nccl" || !others,
               "--comm nccl: not all devices of all processes are GPUs: {} of this one",
               fmt::join(settings.devices, ","));
  const bool wanted = settings.comm == "nccl" || settings.comm == "auto";
  return wanted && !others && ranks.replicas() > 1;
}

namespace {

PipelineOptions pipeline_options(const TrainingJob& job, const Settings& settings,
                                 const Ranks& ranks) {
  const Network& network = *job.network;
  PipelineOptions options;
  options.layout = ranks.layout();
  options.cuts = choose_cuts(job, ranks);
  options.sample = network.takes_rows() ? Shape{1, network.in()}
                                        : Shape{1, network.in(), job.image_size, job.image_size};
  options.division = division_of(settings, ranks.replicas());
  options.buckets = job.buckets;
  options.nccl = uses_nccl(settings, ranks);
  options.comm_timeout = settings.comm_timeout;
  if (ranks.layout().stages() == 1) return options;
  options.schedule.name = settings.schedule;
  options.schedule.warm_up = job.warm_up;
  if (schedule_is_file(settings)) {
    options.schedule.table = read_schedule_file(settings.schedule);
    options.schedule.table_source = settings.schedule;
  }
  return options;
}

}  // namespace

std::unique_ptr<StepRunner> make_runner(const TrainingJob& job) {
  const Settings settings = resolved_settings(job.settings, job.network->takes_rows());
  const Ranks ranks = ranks_of(job);
  check_named_once(settings);
  check_kinds(settings.devices, ranks.local_workers());
  check_sharing(settings, ranks, uses_nccl(settings, ranks));
  CONVOY_CHECK(!settings.graph || !job.group,
               "--graph records the step of one device alone, but there are {} workers",
               ranks.layout().world());
  std::vector<WorkerParts> workers = make_workers(job, settings, ranks);
  if (!job.group) return make_local_runner(std::move(workers.front()), settings.graph);
  return std::make_unique<PipelineRunner>(*job.group, std::move(workers),
                                          pipeline_options(job, settings, ranks));
}

}  // namespace convoy
