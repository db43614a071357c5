#include "engine/train/layout.h"

#include <algorithm>
#include <charconv>

#include "kernels/base/error.h"

namespace convoy {
namespace {

int stages_of(const Settings& settings) {
  int stages = 0;
  const char* end = settings.stages.data() + settings.stages.size();
  const auto [stop, code] = std::from_chars(settings.stages.data(), end, stages);
  CONVOY_CHECK(code == std::errc() && stop == end && stages >= 1,
               "--stages {}: a number of stages from 1 on is expected here", settings.stages);
  return stages;
}

// Pipeline workers of a replica, each with as many stages as the schedule gives it.
Layout pipeline_of(const Settings& settings) {
  const int stages = stages_of(settings);
  if (settings.schedule != "interleaved" || stages == 1) return {1, stages, 1};
  const auto each = static_cast<int>(std::min<std::int64_t>(settings.stages_per_worker, 1 << 20));
  CONVOY_CHECK(stages % each == 0,
               "--stages {}: --schedule interleaved gives each worker {} stages "
               "(--stages-per-worker), expected a multiple of {}",
               stages, each, each);
  return {1, stages / each, each};
}

}  // namespace

std::vector<int> Layout::stages_of(int rank) const {
  std::vector<int> stages;
  for (int stage = position_of(rank); stage < this->stages(); stage += workers_per_replica) {
    stages.push_back(stage);
  }
  return stages;
}

Layout layout_of(const Settings& settings, int workers) {
  Layout layout = pipeline_of(settings);
  const int each = layout.workers_per_replica;
  const std::string text = layout.stages_per_worker > 1
                               ? fmt::format("--stages {} on {} workers of {} stages",
                                             layout.stages(), each, layout.stages_per_worker)
                               : fmt::format("--stages {}", layout.stages());
  CONVOY_CHECK(!settings.replicas || *settings.replicas * each == workers,
               "--replicas {} with {}: that makes {} worker(s), but there are {}, one a device of "
               "each process",
               settings.replicas.value_or(0), text, settings.replicas.value_or(0) * each, workers);
  CONVOY_CHECK(workers % each == 0,
               "{}: there are {} worker(s), one a device of each process, expected {} or a "
               "multiple of it",
               text, workers, each);
  layout.replicas = workers / each;
  return layout;
}

std::string describe(const Layout& layout) {
  auto count = [](int number, const char* what) {
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
  };
  if (layout.stages() == 1) return count(layout.replicas, "replica");
  if (layout.replicas == 1) return count(layout.stages(), "stage");
  return count(layout.replicas, "replica") + " x " + count(layout.stages(), "stage");
}

}  // namespace convoy
