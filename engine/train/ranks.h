// What the processes of a run agree on, and what they tell their watchdog. A run of one process and
// one worker has no group: every answer is its own then.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/group.h"
#include "engine/data/loader.h"
#include "engine/io/named_array.h"
#include "engine/train/layout.h"

namespace convoy {

/// All but the getters are collective: every process makes the same calls, on the thread that made
/// the group.
class Ranks {
 public:
  /// `group` may be null; it outlives this. `layout` divides its workers; without one each worker
  /// is a replica.
  Ranks(Group* group, const Layout& layout) : group_(group), layout_(layout) {}
  explicit Ranks(Group* group) : Ranks(group, Layout{group ? group->size() : 1}) {}

  const Layout& layout() const { return layout_; }
  int replicas() const { return layout_.replicas; }
  /// Of all processes.
  int workers() const { return group_ ? group_->size() : 1; }
  /// Of this process: the rank of its first worker, and how many.
  int first_worker() const { return group_ ? group_->first_rank() : 0; }
  int local_workers() const { return group_ ? group_->local_workers() : 1; }
  /// Replicas whose first stage is on this process: it loads their images. Those whose last stage
  /// is here: it loads their labels. Either may be empty.
  ReplicaRange image_replicas() const { return with_position(0); }
  ReplicaRange label_replicas() const { return with_position(layout_.workers_per_replica - 1); }
  int processes() const { return group_ ? group_->world().size : 1; }
  /// The process that decides, writes and shows.
  bool leads() const { return !group_ || group_->world().rank == 0; }
  Group* group() const { return group_; }

  bool any(bool mine) const;
  /// The leader's text, on all.
  std::string from_leader(const std::string& mine) const;
  /// The texts, or numbers, of all processes in rank order, one after the other; they may differ in
  /// count.
  std::vector<std::string> all_texts(const std::vector<std::string>& mine) const;
  std::vector<std::int64_t> all_numbers(const std::vector<std::int64_t>& mine) const;
  /// Those of all processes in the order of the epoch.
  std::vector<SkippedImage> all_skipped(const std::vector<SkippedImage>& mine) const;
  /// The leader's arrays, on all; what the others give is dropped.
  std::vector<NamedArray> arrays_from_leader(std::vector<NamedArray> mine) const;
  void barrier() const;

  /// What this process's workers do, for their progress boards. Not collective.
  void enter(Activity activity) const;
  void begin_step(std::int64_t step) const;

 private:
  bool alone() const { return processes() == 1; }
  ReplicaRange with_position(int position) const;

  Group* group_;
  Layout layout_;
};

}  // namespace convoy
