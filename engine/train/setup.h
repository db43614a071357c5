// From settings to devices, element types and modes: what training, evaluation and prediction
// share, and what can be checked before any data is opened.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/ops/ops.h"
#include "engine/optim/optimizer.h"
#include "engine/train/batch_plan.h"
#include "engine/train/ranks.h"
#include "engine/train/settings.h"
#include "engine/train/trainer.h"
#include "kernels/base/context.h"
#include "kernels/base/dtype.h"

namespace convoy {

/// Threads of each worker: --threads, else OMP_NUM_THREADS; empty where neither says. `usage` for a
/// number that no machine of so few cores could carry.
std::optional<int> threads_of(const Settings& settings);

/// How many workers, of all processes of this host, run on this process's cores. Collective.
int workers_on_these_cores(const Ranks& ranks);

/// Threads of each worker of this process: what threads_of() says, else its part of the cores.
int threads_per_worker(const Settings& settings, const Group* group);

/// One of settings.devices, with threads and memory cap applied.
DeviceContext& prepare_device(const Settings& settings, std::size_t which = 0);

/// Makes all of settings.devices ready: each with its worker's threads, on cores of its own.
void prepare_workers(Settings& settings, const Group* group);

/// Whether copies and sums beside the work of this process's workers find cores of their own.
bool has_spare_cores(const Settings& settings);

/// `usage` where settings.devices name one twice that is no GPU. Two workers of a process may share
/// a GPU, each with a stream of its own; cores are shared already.
void check_named_once(const Settings& settings);

/// The element type of settings.precision; `usage` where a device's kernels lack it.
DType dtype_of_precision(const Settings& settings);

/// When running statistics change, as settings.bn says.
BatchNormMode batch_norm_mode(const Settings& settings);

/// The processes of `job` and the layout of its workers. `usage` where they do not fit.
Ranks ranks_of(const TrainingJob& job);

/// How `replicas` replicas divide a batch. One replica alone makes `sync` the same as `micro`.
Division division_of(const Settings& settings, int replicas);

/// Whether gradients are added over NCCL: where there are replicas and all devices of all processes
/// are GPUs, unless settings.comm names another way. Collective. `usage` for nccl and other
/// devices.
bool uses_nccl(const Settings& settings, const Ranks& ranks);

/// The optimizer of resolved settings.
std::unique_ptr<Optimizer> make_optimizer(const Settings& settings, NamedTensors parameters);

/// Fills in what runs where: workers, devices, threads, hosts. Collective.
void describe_workers(const TrainingJob& job, const Ranks& ranks, RunInfo& info);

}  // namespace convoy
