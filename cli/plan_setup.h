// From options to what the planner is asked: for `plan` and for `train --stages auto`.
#pragma once

#include <vector>

#include "cli/options.h"
#include "engine/nn/network.h"
#include "engine/parallel/pipeline/planner.h"
#include "engine/train/local_plan.h"
#include "engine/train/ranks.h"
#include "engine/train/trainer.h"

namespace convoy::cli {

/// Batch and what the layout's flags say, where they were given: the rest is open.
PlanTask plan_task_of(const Options& options, const Network& network, int workers);

/// Places of --cut NAME,NAME; none for `auto`.
std::vector<int> given_cuts(const Settings& settings, const Network& network);

/// What a plan is about to do, as notes on stderr: it takes a while.
void tell_measuring(const Ranks& ranks);
void tell_timing(const Ranks& ranks, const LocalPlan& plan);

/// Carries out --stages auto: plans, times the best, and writes the winner into the settings of
/// options and job; the leader tells what it does. Nothing to do for a number. Collective.
void settle_layout(Options& options, TrainingJob& job);

}  // namespace convoy::cli
