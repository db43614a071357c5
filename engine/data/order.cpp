#include "engine/data/order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/data/random.h"
#include "kernels/base/error.h"

namespace convoy {

std::vector<std::int64_t> epoch_order(std::uint64_t seed, std::int64_t epoch, std::int64_t count) {
  std::vector<std::int64_t> order = plain_order(count);
  DataRandom random(seed, RandomPurpose::order, static_cast<std::uint64_t>(epoch), 0);
  for (std::int64_t i = count - 1; i > 0; --i) {
    std::swap(order[static_cast<std::size_t>(i)],
              order[static_cast<std::size_t>(random.below(i + 1))]);
  }
  return order;
}

std::vector<std::int64_t> plain_order(std::int64_t count) {
  CONVOY_CHECK(count >= 0, "epoch order: {} images, at least 0 expected", count);
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Share share_of(std::int64_t count, int parts, int part) {
  CONVOY_CHECK(parts >= 1 && part >= 0 && part < parts,
               "share of a batch: part {} of {}, 0 to parts - 1 expected", part, parts);
  std::int64_t base = count / parts;
  std::int64_t larger = count % parts;
  return {part * base + std::min<std::int64_t>(part, larger), base + (part < larger ? 1 : 0)};
}

std::vector<std::int64_t> shares_of(std::int64_t count, int parts) {
  std::vector<std::int64_t> counts;
  for (int part = 0; part < parts; ++part) counts.push_back(share_of(count, parts, part).count);
  return counts;
}

}  // namespace convoy
