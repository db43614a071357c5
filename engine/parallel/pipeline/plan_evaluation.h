// A candidate of the planner, cut, simulated and weighed.
#pragma once

#include "engine/parallel/pipeline/planner.h"

namespace convoy {

/// Images of the replica that has most of a batch.
std::int64_t largest_share(const PlanTask& task, int replicas);

/// Its images by micro-batch id, of all batches of a window.
std::vector<std::int64_t> images_of(const PlanTask& task, const PlanCandidate& candidate);

/// Fills in cut, seconds, shares and memory. Recomputes where memory asks for it; what does not fit
/// even so is dropped with the reason.
void evaluate(const PlanTask& task, PlanCandidate& candidate);

}  // namespace convoy
