// From settings to devices, element types and modes: what training, evaluation and prediction
// share, and what can be checked before any data is opened.
#pragma once

#include <optional>
#include <string>

#include "engine/ops/ops.h"
#include "engine/train/settings.h"
#include "kernels/base/context.h"
#include "kernels/base/dtype.h"

namespace convoy {

/// Threads of each worker: --threads, else OMP_NUM_THREADS; empty where neither says. `usage` for a
/// number that no machine of so few cores could carry.
std::optional<int> threads_of(const Settings& settings);

/// The first of settings.devices, with threads and memory cap applied.
DeviceContext& prepare_device(const Settings& settings);

/// The element type of settings.precision; `usage` where the first device's kernels lack it.
DType dtype_of_precision(const Settings& settings);

/// The mode of settings.bn; `usage` for those that need several replicas.
BatchNormMode batch_norm_mode(const Settings& settings);

}  // namespace convoy
