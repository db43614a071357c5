#include "engine/train/local_plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string>

#include "engine/parallel/pipeline/auto_cut.h"

namespace convoy {
namespace {

// A profile that would take longer is left out: its times are on the line through smaller ones.
constexpr double kLongestProfile = 25;
constexpr int kMostRefinements = 4;

// What to measure next; 0: enough. The leader decides.
std::int64_t agreed(const Ranks& ranks, std::int64_t mine) {
  const std::string text = ranks.from_leader(std::to_string(mine));
  std::int64_t images = 0;
  std::from_chars(text.data(), text.data() + text.size(), images);
  return images;
}

// The largest size that can be measured in time.
std::int64_t largest_in_time(const MeasuredCosts& costs, const std::vector<std::int64_t>& sizes) {
  std::int64_t largest = sizes.front();
  for (std::int64_t size : sizes) {
    if (costs.seconds_for(size) <= kLongestProfile) largest = size;
  }
  return largest;
}

// The smallest size, the largest and one in between: times are no straight line where caches fill.
void measure_first(MeasuredCosts& costs, const Ranks& ranks,
                   const std::vector<std::int64_t>& sizes) {
  costs.measure(sizes.front());
  const std::int64_t largest = agreed(ranks, largest_in_time(costs, sizes));
  if (!costs.has(largest)) costs.measure(largest);
  const double middle = std::sqrt(static_cast<double>(sizes.front() * largest));
  const auto nearest =
      *std::min_element(sizes.begin(), sizes.end(), [middle](std::int64_t a, std::int64_t b) {
        return std::abs(static_cast<double>(a) - middle) <
               std::abs(static_cast<double>(b) - middle);
      });
  if (!costs.has(nearest)) costs.measure(nearest);
}

// The size of the best candidate of a layout that was not measured; 0 if all were.
std::int64_t unmeasured(const MeasuredCosts& costs, const std::vector<PlanCandidate>& candidates) {
  std::set<std::string> layouts;
  for (const PlanCandidate& candidate : candidates) {
    if (!candidate.dropped.empty() || !layouts.insert(candidate.layout).second) continue;
    const std::int64_t size = candidate.micro_batch_size;
    if (!costs.has(size) && costs.seconds_for(size) <= kLongestProfile) return size;
  }
  return 0;
}

}  // namespace

LocalPlan plan_here(const TrainingJob& job, const Ranks& ranks, PlanTask task,
                    const std::vector<int>& cuts) {
  LocalPlan plan;
  plan.costs = std::make_shared<MeasuredCosts>(job, ranks);
  task.machine = plan.costs->machine();
  task.nodes_at = [costs = plan.costs](std::int64_t images) { return costs->nodes_at(images); };
  measure_first(*plan.costs, ranks, sizes_of(task));
  if (!cuts.empty()) task.node_ends = node_ends_of(plan.costs->profile(), cuts);
  plan.candidates = plan_layouts(task);
  for (int i = 0; i < kMostRefinements; ++i) {
    const std::int64_t size = agreed(ranks, unmeasured(*plan.costs, plan.candidates));
    if (size == 0) break;
    plan.costs->measure(size);
    plan.candidates = plan_layouts(task);
  }
  plan.costs->finish();
  plan.task = std::move(task);
  return plan;
}

}  // namespace convoy
