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
  /// The fewest images that a micro-batch of the epoch has.
  std::int64_t smallest_micro_batch(const MicroBatchRule& rule) const;
};

}  // namespace convoy
