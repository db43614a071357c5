#include "cli/check_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/read_options.h"
#include "cli/setup.h"
#include "cli/value.h"
#include "comm/nccl_devices.h"
#include "engine/train/defaults.h"
#include "engine/train/setup.h"
#include "kernels/base/device.h"
#include "kernels/base/error.h"
#include "kernels/base/host_context.h"
#include "models/models.h"

namespace convoy::cli {
namespace {

std::string no_effect(const std::string& flag, const char* where) {
  return fmt::format("--{} has no effect {}", flag, where);
}

void check_layout(const Settings& settings) {
  check_named_once(settings);
  CONVOY_CHECK(settings.cut == "auto" || settings.stages != "1",
               "--cut {}: one stage has no cut; say how many there are with --stages",
               settings.cut);
  for (const std::string& name : settings.devices) {
    CONVOY_CHECK(settings.comm != "nccl" || is_gpu(Device(name)),
                 "--comm nccl: {} is no GPU, expected --devices cuda:K or emu:K", name);
  }
  CONVOY_CHECK(
      !settings.graph || (settings.devices.size() == 1 && is_gpu(Device(settings.devices[0]))),
      "--graph records the step of one GPU, but --devices is {}, expected one cuda:K or emu:K",
      fmt::join(settings.devices, ","));
  CONVOY_CHECK(!(settings.micro_batch_size && settings.micro_batches),
               "--micro-batch-size {} and --micro-batches {} exclude each other",
               settings.micro_batch_size.value_or(0), settings.micro_batches.value_or(0));
}

void check_numbers(const Settings& settings) {
  dtype_of_precision(settings);
  batch_norm_mode(settings);
  if (settings.threads) threads_of(settings);
  for (const std::string& name : settings.devices) {
    CONVOY_CHECK(settings.kernels == "own" || Device(name).type == DeviceType::cuda,
                 "--kernels vendor concerns GPUs, but the device is {}, expected cuda:K", name);
  }
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

std::vector<std::string> idle_notes(const Options& options, const Layout& layout) {
  std::vector<std::string> notes;
  const auto note = [&](const std::string& name, bool idle, const char* where) {
    if (idle && was_given(options, name)) notes.push_back(no_effect(name, where));
  };
  const bool one_stage = layout.stages() == 1;
  note("schedule", one_stage, "with one stage");
  note("stages-per-worker", one_stage, "with one stage");
  note("stages-per-worker", !one_stage && options.settings.schedule != "interleaved",
       "without --schedule interleaved");
  // One device goes back through each micro-batch at once: only one set of activations is alive.
  for (const char* name : {"comm", "comm-timeout", "recompute"}) {
    note(name, layout.world() == 1, "on one device");
  }
  const bool whole = !options.settings.micro_batches && !options.settings.micro_batch_size;
  if (!one_stage && whole) {
    notes.emplace_back(
        "one micro-batch a batch: stages work one after the other; --micro-batches or "
        "--micro-batch-size let them work at the same time");
  }
  return notes;
}

}  // namespace convoy::cli
