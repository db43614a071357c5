// Where each instruction of a schedule stands: what the verifier's checks look things up in.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/parallel/pipeline/verify_schedule.h"

namespace convoy {

/// An index of a schedule that has passed check_stages.
class Places {
 public:
  Places(const Schedule& schedule, int stages);

  int owner(int stage) const { return owners_[stage]; }
  /// Whether the edge from `stage` to the next one lies between two workers.
  bool crosses(int stage) const { return owners_[stage] != owners_[stage + 1]; }
  /// How often an instruction stands on its worker's line.
  int count(const Instruction& instruction) const { return find(instruction).count; }
  /// Its first place on the line, from 0; -1 for none.
  int of(const Instruction& instruction) const { return find(instruction).first; }

 private:
  struct Place {
    int first = -1, count = 0;
  };
  Place find(const Instruction& instruction) const;

  std::vector<int> owners_;
  std::unordered_map<std::uint64_t, Place> places_;  // by the instruction's key
};

/// Ids of all windows, one after the other. `usage` where they do not ascend.
std::vector<int> all_micro_batches(const ScheduleTask& task);

}  // namespace convoy
