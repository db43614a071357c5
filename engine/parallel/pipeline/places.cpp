#include "engine/parallel/pipeline/places.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "kernels/base/error.h"

namespace convoy {

namespace {

// Operation, stage and micro-batch as one number.
std::uint64_t key_of(const Instruction& instruction) {
  const auto [op, stage, k] = instruction;
  const std::uint64_t row = static_cast<std::uint64_t>(stage) * std::size(kOpNames);
  return (row + static_cast<std::uint64_t>(op)) << 32 | static_cast<std::uint32_t>(k);
}

}  // namespace

Places::Places(const Schedule& schedule, int stages) : owners_(stages, -1) {
  for (int worker = 0; worker < schedule.workers(); ++worker) {
    const ScheduleLine& line = schedule.lines[worker];
    for (std::size_t i = 0; i < line.size(); ++i) {
      owners_[line[i].stage] = worker;
      Place& place = places_[key_of(line[i])];
      if (place.count++ == 0) place.first = static_cast<int>(i);
    }
  }
}

Places::Place Places::find(const Instruction& instruction) const {
  const auto found = places_.find(key_of(instruction));
  return found == places_.end() ? Place{} : found->second;
}

std::vector<int> all_micro_batches(const ScheduleTask& task) {
  std::vector<int> ids;
  for (const auto& window : task.windows) ids.insert(ids.end(), window.begin(), window.end());
  CONVOY_CHECK(std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end(),
               "schedule: the windows' micro-batches do not ascend");
  return ids;
}

}  // namespace convoy
