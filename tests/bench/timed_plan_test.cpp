// Never worse than data parallel: which of the timed layouts is taken.
#include "bench/timed_plan.h"

#include "engine/parallel/pipeline/profile.h"
#include "models/models.h"
#include "tests/support/catch.h"

using namespace convoy;

namespace {

TimedLayout timed(const char* stages, double median, double spread) {
  TimedLayout layout;
  layout.layout.settings.stages = stages;
  layout.median_s = median;
  layout.spread_s = spread;
  return layout;
}

}  // namespace

TEST_CASE("a pipeline is taken only where it is faster by more than both spread") {
  CHECK(fastest_layout({timed("2", 0.8, 0.05), timed("1", 1, 0.1)}).is_pipeline());
  CHECK_FALSE(fastest_layout({timed("2", 0.8, 0.15), timed("1", 1, 0.1)}).is_pipeline());
  CHECK_FALSE(fastest_layout({timed("2", 1.2, 0), timed("1", 1, 0)}).is_pipeline());
  CHECK(fastest_layout({timed("2", 0.9, 0), timed("4", 0.8, 0), timed("1", 1, 0.05)}).median_s ==
        0.8);
  CHECK(fastest_layout({timed("1", 1, 0), timed("1", 0.9, 0)}).median_s == 0.9);
  CHECK(fastest_layout({timed("2", 9, 0)}).is_pipeline());  // nothing else fits
}

TEST_CASE("a candidate becomes the settings that train it") {
  const auto network = make_model_without_values("resnet18", 10);
  Profile profile;
  profile.ends = node_ends(*network);
  PlanCandidate candidate;
  candidate.replicas = 2;
  candidate.stages = 2;
  candidate.stages_per_worker = 2;
  candidate.schedule = "interleaved";
  candidate.micro_batch_size = 3;
  candidate.node_ends = {2, 7, 12, static_cast<int>(profile.ends.size())};
  candidate.seconds = 4;
  Settings given;
  given.micro_batches = 5;
  const PlannedLayout layout = layout_of_candidate(given, *network, profile, candidate);
  CHECK(layout.forecast_s == 4);
  CHECK(layout.settings.replicas == 2);
  CHECK(layout.settings.stages == "4");
  CHECK(layout.settings.stages_per_worker == 2);
  CHECK(layout.settings.schedule == "interleaved");
  CHECK(layout.settings.micro_batch_size == 3);
  CHECK_FALSE(layout.settings.micro_batches);
  CHECK(layout.settings.cut == "layer1,layer2.0.conv2,layer3.0.conv2");
}
