#include "engine/train/batch_plan.h"

#include <algorithm>
#include <numeric>

#include "engine/data/order.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Images of micro-batch `pass` of a share; 0 beyond its last one.
std::int64_t part_of(std::int64_t share, std::size_t pass, const MicroBatchRule& rule) {
  const std::vector<std::int64_t> parts = split_batch(share, rule);
  return pass < parts.size() ? parts[pass] : 0;
}

std::int64_t group_at(const std::vector<std::int64_t>& shares, std::size_t pass,
                      const MicroBatchRule& rule) {
  return std::accumulate(
      shares.begin(), shares.end(), std::int64_t{0},
      [&](std::int64_t sum, std::int64_t share) { return sum + part_of(share, pass, rule); });
}

// The last micro-batch of any of them, which is the smallest group.
std::int64_t drop_together(std::vector<std::int64_t>& shares, const MicroBatchRule& rule,
                           std::int64_t least) {
  std::int64_t dropped = 0;
  for (;;) {
    std::size_t passes = 0;
    for (std::int64_t share : shares) passes = std::max(passes, split_batch(share, rule).size());
    if (passes == 0) return dropped;
    const std::int64_t group = group_at(shares, passes - 1, rule);
    if (group >= least) return dropped;
    for (std::int64_t& share : shares) share -= part_of(share, passes - 1, rule);
    dropped += group;
  }
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

std::vector<std::int64_t> passes_of(const std::vector<std::int64_t>& shares,
                                    const Division& division) {
  std::vector<std::int64_t> passes;
  for (std::int64_t share : shares) passes.push_back(std::ssize(split_batch(share, division.rule)));
  if (!division.together || passes.empty()) return passes;
  return std::vector<std::int64_t>(passes.size(), *std::max_element(passes.begin(), passes.end()));
}

std::vector<std::int64_t> groups_of(const std::vector<std::int64_t>& shares,
                                    const Division& division) {
  std::vector<std::int64_t> groups;
  if (!division.together) {
    for (std::int64_t share : shares) {
      for (std::int64_t part : split_batch(share, division.rule)) groups.push_back(part);
    }
    return groups;
  }
  const std::vector<std::int64_t> passes = passes_of(shares, division);
  const auto count = static_cast<std::size_t>(passes.empty() ? 0 : passes.front());
  for (std::size_t k = 0; k < count; ++k) groups.push_back(group_at(shares, k, division.rule));
  return groups;
}

std::int64_t drop_small_groups(std::vector<std::int64_t>& shares, const Division& division,
                               std::int64_t least) {
  if (division.together) return drop_together(shares, division.rule, least);
  std::int64_t dropped = 0;
  for (std::int64_t& share : shares) {
    std::vector<std::int64_t> alone = {share};
    dropped += drop_together(alone, division.rule, least);
    share = alone[0];
  }
  return dropped;
}

std::int64_t EpochPlan::steps() const {
  return ceil_div(images, batch * accumulate);
}

WindowPlan EpochPlan::window_at(std::int64_t first) const {
  const std::int64_t count = std::min(batch * accumulate, images - first);
  return {first, count, ceil_div(count, batch)};
}

std::int64_t EpochPlan::smallest_group(const Division& division) const {
  const std::int64_t rest = images % batch;
  std::int64_t smallest = images;
  for (std::int64_t size : {std::min(batch, images), rest}) {
    for (std::int64_t group : groups_of(shares_of(size, division.replicas), division)) {
      smallest = std::min(smallest, group);
    }
  }
  return smallest;
}

}  // namespace convoy
