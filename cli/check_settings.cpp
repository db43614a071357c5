#include "cli/check_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/read_options.h"
#include "cli/setup.h"
#include "cli/value.h"
#include "engine/train/defaults.h"
#include "engine/train/setup.h"
#include "kernels/base/device.h"
#include "kernels/base/error.h"
#include "kernels/base/host_context.h"
#include "models/models.h"

namespace convoy::cli {
namespace {

// Two workers on one device would wait for each other in one queue.
void check_devices(const std::vector<std::string>& devices) {
  for (std::size_t i = 1; i < devices.size(); ++i) {
    const auto before = devices.begin() + static_cast<std::ptrdiff_t>(i);
    CONVOY_CHECK(std::find(devices.begin(), before, devices[i]) == before,
                 "--devices {}: {} is named twice", fmt::join(devices, ","), devices[i]);
  }
}

std::string no_effect(const std::string& flag, const char* where) {
  return fmt::format("--{} has no effect {}", flag, where);
}

void check_layout(const Settings& settings) {
  check_devices(settings.devices);
  CONVOY_CHECK(settings.stages == "1", "--stages {}: this build trains the network as one stage",
               settings.stages);
  CONVOY_CHECK(settings.cut == "auto", "--cut {}: one stage has no cut, expected auto",
               settings.cut);
  CONVOY_CHECK(!settings.recompute, "--recompute is not in this build yet");
  CONVOY_CHECK(settings.comm != "nccl",
               "--comm nccl is not in this build yet, expected auto, thread or mpi");
  CONVOY_CHECK(!(settings.micro_batch_size && settings.micro_batches),
               "--micro-batch-size {} and --micro-batches {} exclude each other",
               settings.micro_batch_size.value_or(0), settings.micro_batches.value_or(0));
  CONVOY_CHECK(settings.schedule.find_first_of("./") == std::string::npos,
               "--schedule {}: schedules from files are not in this build yet", settings.schedule);
}

void check_numbers(const Settings& settings) {
  dtype_of_precision(settings);
  batch_norm_mode(settings);
  if (settings.threads) threads_of(settings);
  CONVOY_CHECK(settings.kernels == "own",
               "--kernels vendor concerns GPUs, which are not in this build yet");
}

void check_optimizer(const Options& options) {
  const Settings& settings = options.settings;
  CONVOY_CHECK(!settings.nesterov || settings.optimizer == "sgd",
               "--nesterov goes with --optimizer sgd, not with {}", settings.optimizer);
  CONVOY_CHECK(!settings.nesterov || settings.momentum > 0,
               "--nesterov needs --momentum above 0, it is {}", settings.momentum);
  CONVOY_CHECK(!was_given(options, "momentum") || settings.optimizer != "adamw",
               "--momentum goes with --optimizer sgd or lars, not with adamw");
  resolved_settings(settings, takes_rows(settings.model));
}

void check_run(const Settings& settings) {
  CONVOY_CHECK(settings.tensorboard.empty(), "--tensorboard {} is not in this build yet",
               settings.tensorboard);
}

}  // namespace

void check_settings(Options& options) {
  const Settings& settings = options.settings;
  read_choice({settings.model, "--model"}, model_names());
  settle_rivals(options, "micro-batch-size", "micro-batches");
  check_layout(settings);
  check_numbers(settings);
  check_optimizer(options);
  check_run(settings);
}

void check_replicas(const Settings& settings, int workers) {
  CONVOY_CHECK(!settings.replicas || *settings.replicas == workers,
               "--replicas {}: there are {} worker(s), one a device of each process",
               settings.replicas.value_or(0), workers);
}

void check_one_worker(const Settings& settings, const std::string& command,
                      const Environment& environment) {
  CONVOY_CHECK(settings.devices.size() == 1, "--devices {}: {} works on one device, {} are given",
               fmt::join(settings.devices, ","), command, settings.devices.size());
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "WORLD_SIZE"}) {
    const char* size = environment(variable);
    if (!size || !*size) continue;
    CONVOY_CHECK(std::string_view(size) == "1",
                 "{} is {}, but {} works as one process: start it without the launcher", variable,
                 size, command);
    return;
  }
}

std::vector<std::string> device_warnings(const Settings& settings, int workers) {
  std::vector<std::string> warnings;
  const int cores = allowed_cores();
  const int threads = threads_of(settings).value_or(std::max(1, cores / workers));
  if (threads * workers > cores) {
    const std::string who = workers > 1
                                ? fmt::format("{} workers of {} thread(s)", workers, threads)
                                : fmt::format("{} threads", threads);
    warnings.push_back(
        fmt::format("{} share the {} core(s) that this process may use", who, cores));
  }
  for (const std::string& name : settings.devices) {
    Device device(name);
    if (device.type != DeviceType::cpu || device.index < cores) continue;
    warnings.push_back(fmt::format("{}: this process may use {} core(s); devices share them",
                                   to_string(device), cores));
  }
  return warnings;
}

std::vector<std::string> idle_notes(const Options& options, int workers) {
  std::vector<std::string> notes;
  for (const char* name : {"schedule", "stages-per-worker"}) {
    if (was_given(options, name)) notes.push_back(no_effect(name, "with one stage"));
  }
  for (const char* name : {"comm", "comm-timeout"}) {
    if (workers == 1 && was_given(options, name)) notes.push_back(no_effect(name, "on one device"));
  }
  return notes;
}

}  // namespace convoy::cli
