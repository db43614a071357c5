// What a stage costs, as measured or forecast: seconds of F, I and W by images of a micro-batch,
// bytes that stay and bytes that move. Verifier, simulator and planner calculate with it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace convoy {

/// Seconds of one micro-batch on one stage.
struct PhaseTimes {
  double forward = 0;
  double backward_input = 0;
  double backward_weight = 0;

  double backward() const { return backward_input + backward_weight; }
  double total() const { return forward + backward(); }
};

/// Bytes on a stage's worker.
struct StageMemory {
  double parameter_bytes = 0;  ///< weights, their gradients and optimizer state
  double workspace_bytes = 0;  ///< of kernels; stages of one worker share the largest
  double kept_bytes = 0;       ///< an image's activations from F to I
  double weight_bytes = 0;     ///< of an image from I to W: inputs kept, output gradients
  double backward_bytes = 0;   ///< of an image while I runs, besides
  double input_bytes = 0;      ///< an image's tensors from the stage before: X(i)
  double output_bytes = 0;     ///< an image's tensors to the next stage: X(j)
};

struct StageCost {
  std::map<std::int64_t, PhaseTimes> times = {};  ///< by images of a micro-batch, as measured
  StageMemory memory = {};
  double all_reduce_s = 0;  ///< of the stage's gradients over the replicas
  double step_s = 0;        ///< the optimizer
};

/// Times for `images`: as measured, else on the line through the two nearest measured counts (one
/// alone: in proportion); none for 0 images. `usage` without any measurement.
PhaseTimes times_at(const StageCost& cost, std::int64_t images);

/// The same stage with --recompute: only its input stays until I, which runs the forward again.
StageCost with_recompute(const StageCost& cost);

/// A direction of a link between two workers.
struct Link {
  double latency_s = 0;
  double bytes_per_s = 0;  ///< 0: without limit
  /// What a message takes from the worker at either end, where the worker's own core copies it.
  double host_s_per_byte = 0;

  double seconds(double bytes) const {
    return latency_s + (bytes_per_s > 0 ? bytes / bytes_per_s : 0);
  }
};

}  // namespace convoy
