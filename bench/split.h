// bench split: what splitting a network does. The same training step on the same global batch in
// all ways that the workers allow: one device with the whole batch and in micro-batches, model
// parallel, pipelined in micro-batches of many sizes, data parallel, and both together.
//
// Images are random, made before the clock starts and copied to the device within it; SGD with lr
// 0.001. The first step of each program is dropped; then the programs take turns, a step each.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/split_summary.h"
#include "comm/group.h"
#include "engine/train/settings.h"

namespace convoy {

struct SplitBenchOptions {
  /// model, classes (1000), image_size (224), batch (of all replicas), loss, bn, precision,
  /// devices, threads, cut. A cut by hand also tells the stages; `auto` makes one stage a worker,
  /// and fewer with replicas.
  Settings settings;
  /// Images of a micro-batch; empty: those of kSplits that are smaller than the batch and that
  /// batch norm takes.
  std::vector<std::int64_t> splits;
  std::int64_t repeats = 3;
  Group* group = nullptr;  ///< all workers; null: there is one, and only `single` rows
  /// Told what is left out, and why; may be null.
  std::function<void(const std::string&)> on_note = {};
};

/// The tutorial's.
inline constexpr std::int64_t kSplits[] = {1, 3, 5, 8, 10, 12, 20, 40, 60};

/// Told what is measured next, for people: "step 2 of 3: pipeline 12, 1f1b".
using SplitBenchProgress = std::function<void(const std::string&)>;

/// All processes of a group make this call; the leading one's rows count. `usage` for splits that
/// the batch, or batch norm, does not take, for a cut that does not fit the workers, and for more
/// workers than the network can be cut for.
std::vector<SplitRow> bench_split(const SplitBenchOptions& options,
                                  const SplitBenchProgress& progress);

}  // namespace convoy
