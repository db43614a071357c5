// What a stage needs of its device's memory, measured before the first step: two micro-batches of
// made-up images through forward and backward, with no cap; the pool tells the rest.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/nn/slice.h"
#include "engine/parallel/bucket_plan.h"
#include "engine/parallel/pipeline/stage.h"
#include "engine/parallel/pipeline/stage_cost.h"
#include "engine/train/loss_head.h"
#include "engine/train/stage_map.h"

namespace convoy {

/// How a stage is run.
struct StageRun {
  bool is_last = false;  ///< the loss belongs to it
  bool splits = false;   ///< weights wait for an instruction of their own
  double states = 0;     ///< tensors of optimizer state that a parameter has
  BucketLimits buckets;  ///< of gradients that are summed over replicas
  bool has_replicas = false;
  std::int64_t images = 1;  ///< of the largest micro-batch
};

/// Bytes of the stage's tensors in the device's pool. Leaves no trace in the slice. Runs on the
/// stage's worker; nobody else uses the device meanwhile.
StageMemory measure_stage_memory(const std::shared_ptr<NetworkSlice>& slice,
                                 const StageEntry& entry, const RunnerOptions& options,
                                 const StageRun& run);

}  // namespace convoy
