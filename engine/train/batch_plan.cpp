#include "engine/train/batch_plan.h"

#include <algorithm>

#include "kernels/base/error.h"

namespace convoy {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

std::vector<std::int64_t> split_batch(std::int64_t images, const MicroBatchRule& rule) {
  CONVOY_CHECK(!(rule.size && rule.count),
               "micro-batches: give their size or their number, not both ({} and {})", *rule.size,
               *rule.count);
  std::vector<std::int64_t> parts;
  if (images == 0) return parts;
  if (rule.size) {
    for (std::int64_t done = 0; done < images; done += *rule.size) {
      parts.push_back(std::min(*rule.size, images - done));
    }
    return parts;
  }
  const std::int64_t count = std::min(rule.count.value_or(1), images);
  for (std::int64_t i = 0; i < count; ++i) {
    parts.push_back(images / count + (i < images % count ? 1 : 0));
  }
  return parts;
}

std::int64_t EpochPlan::steps() const {
  return ceil_div(images, batch * accumulate);
}

WindowPlan EpochPlan::window_at(std::int64_t first) const {
  const std::int64_t count = std::min(batch * accumulate, images - first);
  return {first, count, ceil_div(count, batch)};
}

std::int64_t EpochPlan::smallest_micro_batch(const MicroBatchRule& rule) const {
  const std::int64_t rest = images % batch;
  std::int64_t smallest = images;
  for (std::int64_t size : {std::min(batch, images), rest}) {
    if (size > 0) smallest = std::min(smallest, split_batch(size, rule).back());
  }
  return smallest;
}

}  // namespace convoy
