// A window's micro-batches, derived from counts alone: every worker makes the same plan. Their ids
// count on over the window's batches.
//
//     batches of 8 and 5 images, at most 3 each:   3 3 2 | 3 2      ids 0 to 4
#pragma once

#include <cstdint>
#include <vector>

#include "engine/train/batch_plan.h"

namespace convoy {

struct MicroBatch {
  std::int64_t batch = 0;            ///< of the window
  std::vector<std::int64_t> begins;  ///< first image of each replica's, within its share
  std::vector<std::int64_t> images;  ///< of each replica
};

class MicroBatchPlan {
 public:
  MicroBatchPlan() = default;
  /// `shares[batch][replica]` as in a Window. A batch without any images has no micro-batch.
  MicroBatchPlan(const std::vector<std::vector<std::int64_t>>& shares, const Division& division);

  int count() const { return static_cast<int>(micro_batches_.size()); }
  const MicroBatch& at(int id) const { return micro_batches_[static_cast<std::size_t>(id)]; }
  /// Images of a replica's micro-batch.
  std::int64_t images(int id, int replica) const {
    return at(id).images[static_cast<std::size_t>(replica)];
  }
  /// Whether the replica computes it: one without images is run where batch norm joins all
  /// replicas, else passed over.
  bool runs(int id, int replica) const { return together_ || images(id, replica) > 0; }
  /// Whether it is the last one of its batch that the replica runs.
  bool ends_batch(int id, int replica) const;
  /// The last one of the window that the replica runs; -1 where it runs none.
  int last(int replica) const;
  /// Whether it is the last one of its batch.
  bool closes_batch(int id) const { return id + 1 == count() || at(id + 1).batch != at(id).batch; }
  /// Images of each micro-batch of one replica.
  std::vector<std::int64_t> images_of(int replica) const;

 private:
  bool together_ = false;
  std::vector<MicroBatch> micro_batches_;
};

}  // namespace convoy
