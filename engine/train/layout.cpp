#include "engine/train/layout.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

#include "engine/parallel/pipeline/schedule_text.h"
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

// A line of the file is a worker; its stages must be those that a worker of that place has.
Layout pipeline_of_file(const Settings& settings, int stages) {
  const Schedule schedule = read_schedule_file(settings.schedule);
  const std::vector<int> owners = stage_owners(schedule);
  CONVOY_CHECK(std::ssize(owners) == stages, "--schedule {}: it has {} stages, --stages says {}",
               settings.schedule, owners.size(), stages);
  const int workers = schedule.workers();
  CONVOY_CHECK(stages % workers == 0,
               "--schedule {}: {} stages on {} workers, which do not divide "
               "them evenly",
               settings.schedule, stages, workers);
  for (int stage = 0; stage < stages; ++stage) {
    CONVOY_CHECK(owners[stage] == stage % workers,
                 "--schedule {}: stage {} is worker {}'s, expected worker {}", settings.schedule,
                 stage, owners[stage], stage % workers);
  }
  return {1, workers, stages / workers};
}

// Pipeline workers of a replica, each with as many stages as the schedule gives it.
Layout pipeline_of(const Settings& settings) {
  const int stages = stages_of(settings);
  if (stages > 1 && schedule_is_file(settings)) return pipeline_of_file(settings, stages);
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

bool schedule_is_file(const Settings& settings) {
  return settings.schedule.find_first_of("./") != std::string::npos;
}

Schedule read_schedule_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  CONVOY_CHECK(file.good(), "--schedule {}: the file cannot be read: {}", path,
               std::strerror(errno));
  return parse_schedule(text.str(), path);
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
