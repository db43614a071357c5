// How a batch is divided, as pure functions: every worker derives the same plan from counts alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace convoy {

/// Either rule may be set, not both; with none a batch is one micro-batch.
struct MicroBatchRule {
  std::optional<std::int64_t> size = {};   ///< s, s, ..., rest
  std::optional<std::int64_t> count = {};  ///< min(count, images) parts that differ by at most 1
};

/// Images of each micro-batch of a batch of `images`: 8 in 3 parts are 3, 3, 2; of size 3 too.
std::vector<std::int64_t> split_batch(std::int64_t images, const MicroBatchRule& rule);

/// How the replicas of a run work on a batch.
struct Division {
  int replicas = 1;
  MicroBatchRule rule = {};
  bool together = false;  ///< batch norm joins micro-batch k of all replicas (the `sync` modes)
};

/// Micro-batches that each replica runs for a batch of these shares: in `sync` modes all run as
/// many as the one that has most, which are empty where a share is smaller.
std::vector<std::int64_t> passes_of(const std::vector<std::int64_t>& shares,
                                    const Division& division);

/// Images that batch norm normalises together, group by group; empty groups are left out.
std::vector<std::int64_t> groups_of(const std::vector<std::int64_t>& shares,
                                    const Division& division);

/// Takes the last images off shares until no group has fewer than `least`. Returns how many.
std::int64_t drop_small_groups(std::vector<std::int64_t>& shares, const Division& division,
                               std::int64_t least);

/// One optimizer step: `batches` batches of up to `batch` images of an epoch, from `first` on.
struct WindowPlan {
  std::int64_t first = 0;
  std::int64_t images = 0;
  std::int64_t batches = 0;
};

/// An epoch of `images` in windows of `accumulate` batches; the last ones may be short.
struct EpochPlan {
  std::int64_t images = 0;
  std::int64_t batch = 1;
  std::int64_t accumulate = 1;

  /// Optimizer steps of an epoch.
  std::int64_t steps() const;
  /// The window that starts at position `first` of the epoch's order.
  WindowPlan window_at(std::int64_t first) const;
  /// The fewest images of the epoch that batch norm normalises together.
  std::int64_t smallest_group(const Division& division) const;
};

}  // namespace convoy
