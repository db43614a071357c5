#include "engine/parallel/pipeline/stage_cost.h"

#include <algorithm>
#include <iterator>

#include "kernels/base/error.h"

namespace convoy {
namespace {

// a + share (b - a), never below nothing: lines from measurements may cross zero.
PhaseTimes mix(const PhaseTimes& a, const PhaseTimes& b, double share) {
  auto between = [share](double from, double to) {
    return std::max(0.0, from + share * (to - from));
  };
  return {between(a.forward, b.forward), between(a.backward_input, b.backward_input),
          between(a.backward_weight, b.backward_weight)};
}

}  // namespace

PhaseTimes times_at(const StageCost& cost, std::int64_t images) {
  if (images <= 0) return {};
  CONVOY_CHECK(!cost.times.empty(), "stage cost: no measured times");
  const auto above = cost.times.lower_bound(images);
  if (above != cost.times.end() && above->first == images) return above->second;
  if (cost.times.size() == 1) {
    const auto& [measured, times] = *cost.times.begin();
    return mix({}, times, static_cast<double>(images) / static_cast<double>(measured));
  }
  const auto right = above == cost.times.begin() ? std::next(above)
                     : above == cost.times.end() ? std::prev(above)
                                                 : above;
  const auto left = std::prev(right);
  const double share =
      static_cast<double>(images - left->first) / static_cast<double>(right->first - left->first);
  return mix(left->second, right->second, share);
}

StageCost with_recompute(const StageCost& cost) {
  StageCost recomputed = cost;
  for (auto& [images, times] : recomputed.times) times.backward_input += times.forward;
  StageMemory& memory = recomputed.memory;
  memory.backward_bytes += memory.kept_bytes;
  memory.kept_bytes = memory.input_bytes;
  return recomputed;
}

}  // namespace convoy
