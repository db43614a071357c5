// The best of a plan, run: a forecast that is wrong must not make training slower. Made-up images,
// a few steps each, turn about.
#pragma once

#include <string>
#include <vector>

#include "engine/train/local_plan.h"

namespace convoy {

/// How a candidate of the planner trains, as settings and what no flag says.
struct PlannedLayout {
  Settings settings;
  std::vector<int> warm_up;
  double forecast_s = 0;
  std::size_t place = 0;  ///< among the leader's candidates
};

/// `settings` with the layout of a candidate for `network`.
PlannedLayout layout_of_candidate(Settings settings, const Network& network, const Profile& profile,
                                  const PlanCandidate& candidate);

struct TimedLayout {
  PlannedLayout layout;
  std::vector<double> seconds;  ///< of the measured steps
  double median_s = 0;
  double spread_s = 0;       ///< half of the way from the fastest step to the slowest
  std::string dropped = {};  ///< why it does not fit into memory; empty: it was timed

  bool is_pipeline() const { return layout.settings.stages != "1"; }
};

/// Times the three fastest candidates, each of another layout or schedule, the fastest data
/// parallel one and, where `alone`, one device alone. Collective; results are the leader's on all
/// processes. `job.make_network` makes their networks. A candidate that does not fit into memory is
/// dropped in `plan`, with the reason, and the next one takes its place; `resource` where none
/// fits.
std::vector<TimedLayout> time_plan(const TrainingJob& job, const Ranks& ranks, LocalPlan& plan,
                                   bool alone);

/// The layout to take: of those without a pipeline the fastest, unless a pipeline is faster by more
/// than what both spread.
const TimedLayout& fastest_layout(const std::vector<TimedLayout>& timed);

}  // namespace convoy
