// What `plan` prints: candidates, the schedule of the best pipeline drawn as text, and what is
// recommended and why; as text or as lines of JSON.
#pragma once

#include <string>
#include <vector>

#include "bench/timed_plan.h"
#include "engine/nn/network.h"
#include "engine/parallel/pipeline/planner.h"
#include "engine/parallel/pipeline/profile.h"

namespace convoy::cli {

/// A plan and what it was made from.
struct PlanReport {
  const Network& network;
  const Profile& profile;  ///< where nodes end
  const PlanTask& task;
  const std::vector<PlanCandidate>& candidates;
  const PlanCandidate& best;       ///< one of these
  std::string workers;             ///< "cpu:0, cpu:1"
  std::vector<TimedLayout> timed;  ///< those that were run; empty: none
};

/// Names of the cuts of a candidate, as --cut takes them.
std::vector<std::string> cut_names(const PlanReport& report, const PlanCandidate& candidate);

/// The flags that make `train` use a candidate; where no name says its schedule, with a file that
/// holds the table.
std::string flags_of(const PlanReport& report, const PlanCandidate& candidate);

/// Why the recommended layout is, in a sentence or two: what the best pipeline and the best data
/// parallel layout lose, and why a faster pipeline is not taken.
std::string reason_of(const PlanReport& report);

/// "pipeline, 2 stages, zb-h1, 4 images x4".
std::string candidate_text(const PlanCandidate& candidate);
/// A table of forecast and measured times, with a head.
std::vector<std::string> timed_text(const std::vector<PlanCandidate>& candidates,
                                    const std::vector<TimedLayout>& timed);

/// Lines to print, without line breaks at their ends.
std::vector<std::string> plan_text(const PlanReport& report);
std::vector<std::string> plan_json(const PlanReport& report);

}  // namespace convoy::cli
