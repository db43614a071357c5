// What the processes of a run agree on, and what they tell their watchdog. A run of one process and
// one worker has no group: every answer is its own then.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/group.h"
#include "engine/data/loader.h"
#include "engine/io/named_array.h"

namespace convoy {

/// All but the getters are collective: every process makes the same calls, on the thread that made
/// the group.
class Ranks {
 public:
  /// `group` may be null; it outlives this.
  explicit Ranks(Group* group) : group_(group) {}

  int replicas() const { return group_ ? group_->size() : 1; }
  int first_replica() const { return group_ ? group_->first_rank() : 0; }
  int local_replicas() const { return group_ ? group_->local_workers() : 1; }
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

  Group* group_;
};

}  // namespace convoy
