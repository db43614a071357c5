// The planner on the devices at hand: measures a few sizes of micro-batches, plans, measures those
// of the best layouts, plans again.
#pragma once

#include <memory>
#include <vector>

#include "engine/parallel/pipeline/planner.h"
#include "engine/train/measured_costs.h"

namespace convoy {

struct LocalPlan {
  std::shared_ptr<MeasuredCosts> costs;  ///< what the task calculates with
  PlanTask task;
  std::vector<PlanCandidate> candidates;
};

/// Layouts of all workers of `ranks` for `job`, whose batch and flags are in `task`; machine and
/// costs are filled in. `cuts`: places of cuts given by hand, or none. Collective; the result is
/// the leader's, the others have one of no worth. `job` and `ranks` outlive the result.
LocalPlan plan_here(const TrainingJob& job, const Ranks& ranks, PlanTask task,
                    const std::vector<int>& cuts = {});

}  // namespace convoy
